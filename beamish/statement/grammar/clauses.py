"""The clauses of a statement: how each is written, which words begin none, and the parts that are read of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from beamish.durations import Duration
from beamish.kinds.over.options import Frame
from beamish.statement.grammar.text import Span, Tree
from beamish.watermarks import Watermark
from beamish.windows import GlobalWindow, WindowOption

CLAUSES = ("SELECT", "FROM", "WINDOW", "WHERE", "GROUP_BY", "HAVING", "EMIT")
"""In the order in which they stand."""
ORDER = "[CREATE TABLE name [WITH (...)] AS] SELECT ... FROM ... [WINDOW ...] [WHERE ...] GROUP BY ... [HAVING ...] [EMIT ...]"
_JOINS = (
    "write FROM orders AS o JOIN payments AS p WITHIN 10 MINUTES ON o.id = p.order_id for two streams, and FROM orders AS o JOIN "
    "rates AS r ON o.paid_in = r.currency for a stream with a table of bm.sql(..., tables=)"
)
RULES: Mapping[str, str] = {
    "FROM": f"write FROM name or FROM name AS other: one source, whose rows are the DataFrame's; to join, {_JOINS}",
    "JOIN": _JOINS,
    "WINDOW": (
        "write WINDOW TUMBLING (SIZE 5 MINUTES), WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES) or WINDOW SESSION (10 MINUTES), "
        "each with GRACE PERIOD 1 DAY within the brackets if late rows count"
    ),
    "OVER": (
        "write SUM(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW), ROWS BETWEEN 10 "
        "PRECEDING AND CURRENT ROW, or neither for all rows so far"
    ),
    "EMIT": "write EMIT FINAL, EMIT CHANGES, EMIT CHANGES RETRACTING or EMIT CHANGES EVERY 10 SECONDS",
    "CREATE": "write CREATE TABLE name AS SELECT ..., or CREATE TABLE name WITH (VALUE_FORMAT = 'JSON') AS SELECT ...",
}
NEEDED: Mapping[str, str] = {
    "FROM": "FROM names the source, whose rows are the DataFrame's",
    "GROUP_BY": (
        "GROUP BY names the columns that make a group; for one group of all rows say SELECT 'all' AS everything, COUNT(*) AS n "
        "... GROUP BY 'all'"
    ),
}
FIRST = "join or combine the DataFrames in Spark first, and give bm.sql the result: bm.sql(...).apply(df)"
_JOIN = f"no such join: INNER, LEFT, RIGHT and FULL [OUTER] JOIN stand directly after FROM and its source; {_JOINS}"
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        ("JOIN", "LEFT", "RIGHT", "INNER", "FULL", "OUTER", "CROSS", "NATURAL", "ANTI", "SEMI", "ASOF"), _JOIN
    ),
    "LATERAL": f"LATERAL: a statement has one source; {FIRST}",
    "UNION": f"UNION: a statement has one source; {FIRST}",
    "INTERSECT": f"INTERSECT: a statement has one source; {FIRST}",
    "EXCEPT": f"EXCEPT: a statement has one source; {FIRST}",
    "WITH": f"WITH: a statement has one source; {FIRST}",
    "TABLE_SAMPLE": "TABLESAMPLE: sample the DataFrame in Spark first",
    "VALUES": "VALUES: the rows are the DataFrame's; pass it to .apply(df)",
    "PIVOT": "PIVOT: pivot the output, in Spark",
    "ORDER_BY": "ORDER BY: a stream is unordered; order the output where it is read",
    "SORT_BY": "SORT BY: a stream is unordered; order the output where it is read",
    "CLUSTER_BY": "CLUSTER BY: rows are spread by GROUP BY; leave it out",
    "DISTRIBUTE_BY": "DISTRIBUTE BY: rows are spread by GROUP BY; leave it out",
    "LIMIT": "LIMIT: a stream has no first rows; use TOPK(x, n) for the greatest of a group",
    "OFFSET": "OFFSET: a stream has no first rows; use TOPK(x, n) for the greatest of a group",
    "FETCH": "FETCH: a stream has no first rows; use TOPK(x, n) for the greatest of a group",
    "QUALIFY": "QUALIFY: no functions over windows of rows; use HAVING for conditions on aggregates",
    "PARTITION_BY": "PARTITION BY: rows are keyed by GROUP BY; name the expressions there",
    "OVER": "OVER stands after a call of its own in the SELECT list: SUM(x) OVER (PARTITION BY k ORDER BY ts) AS s",
    "INSERT": "INSERT INTO: writing is Spark's business: bm.sql('SELECT ...').apply(df).writeStream",
    "ROLLUP": "ROLLUP stands under GROUP BY, after a comma or first: GROUP BY ROLLUP (region, city)",
    "CUBE": "CUBE stands under GROUP BY, after a comma or first: GROUP BY CUBE (region, city)",
    "GROUPING_SETS": "GROUPING SETS stands under GROUP BY, after a comma or first: GROUP BY GROUPING SETS ((region, city), (region), ())",
    "FILTER": "FILTER: say which rows count within the aggregate: COUNT(CASE WHEN ... THEN 1 END)",
    "HINT": "a hint: give hints to the DataFrame",
    "ALL": "ALL: name the expressions that make a group, such as GROUP BY region",
    "DISTINCT": "SELECT DISTINCT: name the columns in GROUP BY, and say COUNT(*)",
    "SELECT": f"a second SELECT: a statement has no subqueries; {FIRST}",
}
"""By sqlglot's type of the word."""

_SERVER = "a command to a server, which bm.sql does not have; it takes one SELECT or CREATE TABLE ... AS SELECT"
_COMMANDS = "ALTER ASSERT DEFINE DESCRIBE DROP LIST PAUSE PRINT RESUME RUN SET SHOW TERMINATE UNDEFINE UNSET"
STATEMENTS: Mapping[str, str] = {
    **{word: f"{word}: {_SERVER}" for word in _COMMANDS.split()},
    "EXPLAIN": "EXPLAIN: a query explains itself: bm.sql('SELECT ...').explain()",
}
"""Statements of ksqlDB, by their first word."""

CREATED: Mapping[str, str] = {
    "OR": "OR REPLACE: nothing is registered, so nothing is replaced: leave it out; bm.check_upgrade tells what a changed query keeps",
    "IF": "IF NOT EXISTS: nothing is registered: leave it out",
    "STREAM": "CREATE STREAM: only a table is created: what GROUP BY gives is one; a stream of a topic is a DataFrame that Spark reads, filters and gives to .apply(df), its TIMESTAMP is event_time='ts'",
    "SOURCE": "CREATE SOURCE: the source is the DataFrame that .apply(df) is given; leave it out",
    "CONNECTOR": "CREATE CONNECTOR: read and write with Spark: spark.readStream, writeStream, bm.sinks",
    "SINK": "CREATE SINK CONNECTOR: write with Spark: writeStream, bm.sinks",
    "TYPE": "CREATE TYPE: types are those of the DataFrame's columns",
}
"""After CREATE or the name of the table."""

_OF_TOPICS = "PARTITIONS REPLICAS RETENTION_MS CLEANUP_POLICY"
_READ = """
    KAFKA_TOPIC FORMAT KEY_FORMAT VALUE_FORMAT KEY_DELIMITER VALUE_DELIMITER WRAP_SINGLE_VALUE KEY_SCHEMA_FULL_NAME VALUE_SCHEMA_FULL_NAME
    KEY_SCHEMA_ID VALUE_SCHEMA_ID KEY_PROTOBUF_NULLABLE_REPRESENTATION VALUE_PROTOBUF_NULLABLE_REPRESENTATION VALUE_AVRO_SCHEMA_FULL_NAME
"""
_BY_SPARK = (
    "a topic's property is set where the result is written: .apply(df).writeStream, or bm.sinks.kafka; leave it out"
)
PROPERTIES: Mapping[str, str | None] = {
    **dict.fromkeys(_READ.split()),
    **{word: f"{word}: {_BY_SPARK}" for word in _OF_TOPICS.split()},
    "TIMESTAMP": "TIMESTAMP: the event time is an argument: bm.sql(..., event_time='ts')",
    "TIMESTAMP_FORMAT": "TIMESTAMP_FORMAT: the event time is a timestamp column: to_timestamp(...) in Spark first",
    "WINDOW_TYPE": "WINDOW_TYPE: write WINDOW after FROM",
    "WINDOW_SIZE": "WINDOW_SIZE: write WINDOW after FROM",
}
"""Under WITH: why one is refused; None: it is accepted, and has no effect, since a DataFrame has no format."""

Kind = Literal["persistent", "push", "pull"]
Refinement = Literal["changes", "final"]


@attrs.frozen
class Dialect:
    """Where the meaning of a statement depends on its dialect.

    Attributes:
        name: "ksqldb" or "flink".
        bounds: the words for the bounds of a window, in upper case: its "start", "end", or "time", the last millisecond in it.
        unnamed: the names of unnamed items of the SELECT list, before their number.
        by_place: whether that is their place in the list; else they are counted by themselves.
        hides_keys: whether an expression under GROUP BY may be missing in the SELECT list.
        millis: whether a bound is a number of milliseconds as an operand of arithmetic.
    """

    name: DialectName
    bounds: Mapping[str, str]
    unnamed: str
    by_place: bool
    hides_keys: bool
    millis: bool

    def unnamed_item(self, place: int, number: int) -> str:
        """The name of an item without one, by its place and its number among these."""
        return f"{self.unnamed}{place if self.by_place else number}"


DialectName = Literal["ksqldb", "flink"]
KSQLDB = Dialect(
    "ksqldb",
    {"WINDOWSTART": "start", "WINDOWEND": "end"},
    "KSQL_COL_",
    by_place=False,
    hides_keys=False,
    millis=True,
)


FLINK = Dialect(
    "flink",
    {"WINDOW_START": "start", "WINDOW_END": "end", "WINDOW_TIME": "time"},
    "EXPR$",
    by_place=True,
    hides_keys=True,
    millis=False,
)


@attrs.frozen
class Name:
    """A name and its place."""

    text: str
    start: int


@attrs.frozen(eq=False)
class KeySets:
    """ROLLUP, CUBE or GROUPING SETS under GROUP BY.

    Attributes:
        word: which of them.
        sets: the expressions of each set.
        start: its place.
    """

    word: str
    sets: Sequence[Sequence[Tree]]
    start: int

    @property
    def trees(self) -> list[Tree]:
        """The expressions of all sets, one after the other."""
        return [tree for one in self.sets for tree in one]


@attrs.frozen(eq=False)
class Over:
    """An OVER after a call.

    Attributes:
        partition: the expressions under PARTITION BY.
        order: the expressions under ORDER BY, whether each descends, and its place.
        rows: the place of both clauses.
        frame: ROWS or RANGE; None: not set.
        start: its place.
    """

    partition: Sequence[Tree]
    order: Sequence[tuple[Tree, bool, int]]
    rows: Span
    frame: Frame | None
    start: int


@attrs.frozen(eq=False)
class Item:
    """An item of the SELECT list: an expression, and its name; None: it has none."""

    tree: Tree
    alias: Name | None
    over: Over | None = None


@attrs.frozen
class Rows:
    """The source.

    Attributes:
        name: as FROM says, without the database.
        alias: the name by which columns may be qualified; the same without AS.
        windows: the windows that a function of Flink's gives the rows; None: it has none.
        time: the event-time column that the statement names for it; None: it names none.
        partition: the expressions that make a session; None: not set.
        groups: the statement with GROUP BY whose groups they are; None: they are rows.
        updated_within: how long before its end a window needs a row to be emitted; None: any row in it is enough.
    """

    name: str
    alias: str
    windows: WindowOption | None = None
    time: Name | None = None
    partition: Sequence[Tree] | None = attrs.field(default=None, eq=False)
    groups: Statement | None = attrs.field(default=None, eq=False)
    updated_within: Duration | None = None


@attrs.frozen
class Schema:
    """A source that the text declares.

    Attributes:
        name: its name.
        event_time: its event-time column; None: not declared.
        watermark: the watermark's policy, declared with it.
        keys: the columns under PRIMARY KEY.
        processing: the columns of processing time, in lower case.
    """

    name: Name
    event_time: str | None
    watermark: Watermark | None
    keys: Sequence[str]
    processing: Sequence[str] = ()


How = Literal["inner", "left", "right", "full"]


@attrs.frozen(eq=False)
class Join:
    """A JOIN after the source.

    Attributes:
        how: which rows without a match are shown.
        rows: the other source.
        within: how far its rows may be before and after those of the first; None: it is a table, or both are in windows.
        grace: how late rows may come; None: not set.
        on: the conditions, all of which hold.
        start: its place.
        windows: the windows in which both are; None: they are in none.
        as_of: the event-time column of the first source, at whose time a table is read; None: not named.
    """

    how: How
    rows: Rows
    within: tuple[Duration, Duration] | None
    grace: Duration | None
    on: Sequence[Tree]
    start: int
    windows: WindowOption | None = None
    as_of: Name | None = None


@attrs.frozen
class Windows:
    """The WINDOW clause.

    Attributes:
        option: the windows.
        grace: how late rows may come; None: not set.
        retention: how long results are asked to be kept; None: not set.
    """

    option: WindowOption = GlobalWindow()
    grace: Duration | None = None
    retention: Duration | None = None


@attrs.frozen
class Emit:
    """Which rows of a group are emitted, and when.

    Attributes:
        kind: persistent with CREATE TABLE, push with EMIT alone, else pull.
        refinement: every change, or the final row; a pull query gives final rows.
        retracting: whether RETRACTING is set.
        every: at most how often; None: not set.
        early: how often before the window's end, 0 for each row; None: not then.
        late: how often after it, likewise; None: not then.
    """

    kind: Kind
    refinement: Refinement
    retracting: bool = False
    every: Duration | None = None
    early: Duration | None = None
    late: Duration | None = None


@attrs.frozen(eq=False)
class Statement:
    """A statement that was read.

    Attributes:
        name: the name after CREATE TABLE; None without.
        properties: those under WITH.
        begins: the place of each clause.
        items: the SELECT list.
        rows: the source.
        joins: the sources that are joined with it.
        windows: the windows.
        where: the condition on rows; None without.
        group_by: the expressions that make a group, and sets of them; empty without GROUP BY.
        having: the condition on panes; None without.
        emit: the emitted rows.
        end: the place of the last word.
        outer: the condition of a SELECT around it, over its items; None without.
        chosen: the items that the SELECT around it takes; empty: all.
        filters: further conditions, on joined rows.
        schemas: the sources that the text declares, by their names in lower case.
        dialect: the dialect.
    """

    name: str | None
    properties: Mapping[str, Any]
    begins: Mapping[str, int]
    items: Sequence[Item]
    rows: Rows
    joins: Sequence[Join]
    windows: Windows
    where: Tree | None
    group_by: Sequence[Tree | KeySets]
    having: Tree | None
    emit: Emit
    end: int
    outer: Tree | None = None
    chosen: Sequence[Item] = ()
    filters: Sequence[Tree] = ()
    schemas: Mapping[str, Schema] = attrs.Factory(dict)
    dialect: Dialect = KSQLDB

    @property
    def grouped_by(self) -> list[Tree]:
        """The expressions under GROUP BY, those of sets among them."""
        return [tree for one in self.group_by for tree in (one.trees if isinstance(one, KeySets) else [one])]

    @property
    def is_over(self) -> bool:
        """Whether its rows have values over the rows around them."""
        return any(item.over is not None for item in self.items)

    @property
    def is_of_windows(self) -> bool:
        """Whether its rows are those of the source, each with its windows."""
        alone = not self.joins and "GROUP_BY" not in self.begins and not self.is_over
        return self.rows.windows is not None and alone
