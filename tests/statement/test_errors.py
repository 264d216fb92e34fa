"""Refused statements: the line, a mark under the position, the rule and the fix (docs/sql.md#errors)."""

import pickle
import re
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.statement.grammar.clauses import CREATED, PROPERTIES, STATEMENTS
from beamish.testing import TestStream
from tests.statement.drawn import expressions

TUMBLING = "WINDOW TUMBLING (SIZE 5 MINUTES)"


def sql(text, **options):
    return bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0), **options)


REFUSED = {
    # syntax
    "^": "there is no statement",
    " ^;": "there is no statement",
    "^SELEC k FROM t GROUP BY k": "begins with SELECT",
    "^DROP TABLE t": "a command to a server",
    "^SHOW TABLES": "a command to a server",
    "^EXPLAIN SELECT k, COUNT(*) AS n FROM t GROUP BY k": r"bm\.sql\('SELECT \.\.\.'\)\.explain",
    "^MERGE INTO t": "begins with SELECT",
    "CREATE ^OR REPLACE TABLE c AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": "OR REPLACE: nothing is registered",
    "CREATE TABLE ^IF NOT EXISTS c AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": "IF NOT EXISTS: nothing is registered",
    "CREATE ^SOURCE TABLE c AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": "the source is the DataFrame",
    "CREATE TABLE c WITH (^PARTITIONS = 3) AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": "PARTITIONS: a topic's property.*writeStream",
    "CREATE TABLE c WITH (^TIMESTAMP = 'ts') AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": "event_time='ts'",
    "CREATE TABLE c WITH (^COLOUR = 'red') AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": "those that are read are KAFKA_TOPIC, FORMAT",
    "CREATE TABLE c WITH (FORMAT = 'AVRO', ^FORMAT = 'JSON') AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": "there twice",
    "CREATE TABLE c WITH (FORMAT = ^JSON) AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": "must be a string",
    "CREATE TABLE c WITH ^FORMAT = 'JSON' AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": r"expected \(",
    "SELECT k, COUNT(*) AS n FROM t WHERE k > ^'1 GROUP BY k": "never closed",
    "SELECT k, COUNT(*) AS n FROM t WHERE k > ^'O''Brien GROUP BY k": "never closed",
    "SELECT k, COUNT(*) AS n FROM t WHERE k > ^'O'' GROUP BY k": "never closed",
    "SELECT k, COUNT(*) AS n FROM t ^/* GROUP BY k": "never closed",
    "SELECT k, COUNT^(* AS n FROM t GROUP BY k": "never closed",
    "SELECT k, COUNT(*)^) AS n FROM t GROUP BY k": "closes nothing",
    "SELECT k, COUNT(*) AS n FROM t WHERE k > ^= 1 GROUP BY k": "cannot be read as an expression",
    "SELECT k, COUNT(*) AS n FROM t WHERE k ^1 2 GROUP BY k": "cannot be read as an expression",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k^; SELECT 1": "takes one statement",
    "^SELECT k, , COUNT(*) AS n FROM t GROUP BY k": "an item of the SELECT list is missing",
    "SELECT k, COUNT(*) AS n FROM t ^GROUP BY k,": "an expression under GROUP BY is missing",
    "SELECT k, ^SUM() AS n FROM t GROUP BY k": "SUM takes 1 argument",
    "CREATE ^STREAM s AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": "CREATE TABLE name AS",
    "CREATE TABLE ^AS SELECT k, COUNT(*) AS n FROM t GROUP BY k": "CREATE TABLE name AS",
    "CREATE ^STREAM s (k STRING) WITH (KAFKA_TOPIC = 'clicks', TIMESTAMP = 'ts')": "of a topic is a DataFrame.*event_time='ts'",
    "CREATE TABLE users ^(k STRING PRIMARY KEY, city STRING)": r"to join users, .*tables=\{'users': .*versions\('1 day'\)\}",
    "SELECT k, COUNT(*) AS n FROM t WHERE ^k IN GROUP BY k": "IN without values",
    # windows
    "SELECT k, COUNT(*) AS n FROM t WINDOW ^SLIDING (SIZE 5 MINUTES) GROUP BY k": "bm.AnchoredWindows",
    "SELECT k, COUNT(*) AS n FROM t WINDOW ^CUMULATING (SIZE 5 MINUTES) GROUP BY k": "TUMBLING, HOPPING or SESSION",
    "SELECT k, COUNT(*) AS n FROM t WINDOW w ^AS (k) GROUP BY k": "a window of rows",
    "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 5 ^FORTNIGHTS) GROUP BY k": "a unit, one of DAY, HOUR, MINUTE",
    "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 5 ^WEEKS) GROUP BY k": "a unit",
    "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE ^1.5 HOURS) GROUP BY k": "a whole number",
    "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE ^0 HOURS) GROUP BY k": "at least 1",
    "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE ^99999999999 DAYS) GROUP BY k": "longer than 146,000 years",
    "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (^5 MINUTES) GROUP BY k": "expected SIZE",
    "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 5 MINUTES, ^ADVANCE BY 1 MINUTE) GROUP BY k": "RETENTION or GRACE",
    "SELECT k, COUNT(*) AS n FROM t WINDOW HOPPING (SIZE 5 MINUTES, ADVANCE BY ^6 MINUTES) GROUP BY k": "at most 5 minutes",
    "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 1 HOUR, ^RETENTION 90 MINUTES, GRACE PERIOD 31 MINUTES) GROUP BY k": (
        "at least 91 minutes"
    ),
    # columns and aggregates
    "SELECT k, ^v, COUNT(*) AS n FROM t GROUP BY k": "v is neither under GROUP BY, written there as here, nor in an aggregate",
    "SELECT k, COUNT(*) + ^v AS n FROM t GROUP BY k": "v is neither under GROUP BY",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING ^v > 1": "v is neither under GROUP BY",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING ^n > 1": r"n is a name of the SELECT list.*write what it stands for, COUNT\(\*\)",
    "SELECT COUNT(*) AS n FROM t GROUP BY ^k": "k is under GROUP BY but not in the SELECT list",
    "SELECT k + 1 AS j, COUNT(*) AS n FROM t GROUP BY ^k": "k is under GROUP BY but not in the SELECT list",
    "SELECT k, COUNT(*) AS n FROM ^t": "there is no GROUP BY",
    "SELECT k FROM t ^GROUP BY k": "GROUP BY without an aggregate",
    "SELECT k, SUM(^COUNT(*)) AS n FROM t GROUP BY k": "COUNT within SUM",
    "SELECT k, COUNT(*) AS n FROM t WHERE ^SUM(v) > 1 GROUP BY k": "SUM under WHERE.*HAVING",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k, ^SUM(v)": "SUM under GROUP BY",
    "SELECT k, ^ANY_VALUE(v) AS n, COUNT(*) AS c FROM t GROUP BY k": "ANY_VALUE: an aggregate of Spark that bm.sql does not have.*aggregates=",
    "SELECT k, ^SUM(a, b) AS n FROM t GROUP BY k": "SUM takes 1 argument",
    "SELECT k, ^MAX_BY(v) AS n FROM t GROUP BY k": r"MAX_BY takes 2 arguments, not 1; write MAX_BY\(x, y\)",
    "SELECT k, SUM(^*) AS n FROM t GROUP BY k": "only COUNT takes all columns",
    "SELECT k, SUM(DISTINCT ^v) AS n FROM t GROUP BY k": "only COUNT takes it",
    "SELECT k, ^COUNT(a, b) AS n FROM t GROUP BY k": "COUNT takes one argument",
    "SELECT k, TOPK(v, ^n) AS n FROM t GROUP BY k": "a plain number",
    "SELECT k, ^TOPK(v, 0) AS n FROM t GROUP BY k": "at least 1",
    "SELECT k, ^PERCENTILE(v, 7) AS n FROM t GROUP BY k": "PERCENTILE|Quantiles",
    "SELECT k, COUNT(*) ^FILTER (WHERE v > 1) AS n FROM t GROUP BY k": "CASE WHEN",
    "SELECT k, COUNT(*), SUM(v) AS ^KSQL_COL_0 FROM t GROUP BY k": "KSQL_COL_0 is there twice",
    "SELECT k, HISTOGRAM(^*) AS n FROM t GROUP BY k": "only COUNT takes all columns",
    "SELECT k, ^MINE(v) AS n FROM t GROUP BY k": "MINE: an unknown function; the nearest that is known is MIN; an aggregate of your own.*'MINE'",
    "SELECT k, 1 + upper(^LATEST_BY_OFSET(v)), COUNT(*) AS n FROM t GROUP BY k": "the nearest that is known is LATEST_BY_OFFSET",
    "SELECT k, ^QUANTILE(v, 0.5) AS n, COUNT(*) FROM t GROUP BY k": "QUANTILE: an unknown function",
    "SELECT k, ^ARRAY_LENGTH(v) AS n, COUNT(*) FROM t GROUP BY k": r"ksqlDB as SIZE\(a\)",
    "SELECT k, MAX(v ^->> 'a') AS n FROM t GROUP BY k": "not '->>'",
    "SELECT k, MAX(v ^GLOB 'a') AS n FROM t GROUP BY k": "not 'GLOB'",
    "SELECT k, MAX(^?) AS n FROM t GROUP BY k": "a parameter; write the value",
    "SELECT k, LATEST_BY_OFFSET(v, ^0) AS n FROM t GROUP BY k": "at least 1",
    "SELECT k, ^LATEST_BY_OFFSET(v + 1) AS n FROM t GROUP BY k": r"offset='offset'\); or write MAX_BY\(v \+ 1, .*LAST\(v \+ 1, TRUE\)",
    "SELECT k, ^EARLIEST_BY_OFFSET(v, 2) AS n FROM t GROUP BY k": r"MIN_BY\(v, .*FIRST\(v, TRUE\)",
    "SELECT k, ^STDDEV_SAMP(v) AS n FROM t GROUP BY k": r"another meaning in ksqlDB.*VARIANCE\(x\).*STDDEV\(x\)",
    "SELECT k, TOPKDISTINCT(v, ^0) AS n FROM t GROUP BY k": "at least 1",
    "SELECT k, TOPK(v, w, ^x) AS n FROM t GROUP BY k": "a plain number",
    "SELECT k, COUNT(*) AS ^k FROM t GROUP BY k": "k is there twice",
    "SELECT k, COUNT(*) AS ^window FROM t GROUP BY k": "window: the output has its own column of this name",
    "SELECT k, COUNT(*) AS ^__beamish_n FROM t GROUP BY k": "are reserved",
    "SELECT timestamp, COUNT(*) AS n FROM t GROUP BY ^timestamp": "rename the column in Spark first",
    "SELECT k, k AS j, COUNT(*) AS n FROM t GROUP BY k, ^K": "twice",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ^1": "name the expressions",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ^ALL": "name the expressions",
    "SELECT ^*, COUNT(*) AS n FROM t GROUP BY k": "name what is shown",
    f"SELECT k, COUNT(*) AS n FROM t {TUMBLING} GROUP BY k HAVING ^WINDOWSTART > 1 EMIT FINAL": "in the SELECT list only",
    f"SELECT k, COUNT(*) AS n FROM t {TUMBLING} WHERE ^WINDOWEND > 1 GROUP BY k EMIT FINAL": "in the SELECT list only",
    "SELECT k, ^WINDOWSTART AS s, COUNT(*) AS n FROM t GROUP BY k": "WINDOWSTART without WINDOW",
    "SELECT k, MAX(^t.*) AS n FROM t GROUP BY k": "name the columns",
    "SELECT k, COUNT(*) + ^* AS n FROM t GROUP BY k": "name the columns",
    "SELECT k, COUNT(*) AS n FROM t WHERE k IS ^DISTINCT GROUP BY k": "cannot be read",
    "SELECT k, COUNT(*) AS n FROM t WHERE k = ^NOT GROUP BY k": "cannot be read",
    "SELECT k, COUNT(*) AS n FROM t WHERE k IS NULL ^IS NULL GROUP BY k": "does not continue it",
    "SELECT k, MAX(transform(xs, x ^=> x + 1)) AS n FROM t GROUP BY k": "Spark writes it as x -> ",
    # emit
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k EMIT ^FINAL": "EMIT FINAL without WINDOW.*TUMBLING",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k EMIT ^OUTPUT": "expected CHANGES or FINAL",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k EMIT CHANGES ^LIMIT 3": "LIMIT.*TOPK",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k EMIT CHANGES EVERY ^SECOND": "a whole number",
    f"SELECT k, COUNT(*) AS n FROM t {TUMBLING} GROUP BY k EMIT FINAL ^RETRACTING": "the end of the clause",
    # the order of the clauses
    f"SELECT k, COUNT(*) AS n FROM t WHERE v > 1 ^{TUMBLING} GROUP BY k EMIT FINAL": "WINDOW comes before WHERE|comes before",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k ^WHERE v > 1": "in this order",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k EMIT CHANGES ^EMIT CHANGES": "EMIT is there twice",
    "SELECT k, COUNT(*) AS n ^GROUP BY k": "there is no FROM",
    # what a statement has not (rule 31)
    "SELECT k, COUNT(*) AS n FROM t ^JOIN u ON t.k = u.k GROUP BY k": "two streams are joined within a time",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k ^JOIN u ON t.k = u.k": "stand directly after FROM",
    "SELECT k, COUNT(*) AS n FROM t^, u GROUP BY k": "one source",
    "SELECT k, COUNT(*) AS n FROM (^SELECT * FROM t) GROUP BY k": "no subqueries",
    "SELECT k, COUNT(*) AS n FROM t WHERE k IN (^SELECT k FROM u) GROUP BY k": "no subqueries",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k ^UNION SELECT 1": "UNION.*in Spark first",
    "^WITH u AS (SELECT 1) SELECT k, COUNT(*) AS n FROM u GROUP BY k": "WITH",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k ^ORDER BY n": "order the output",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k ^LIMIT 3": "TOPK",
    "SELECT ^DISTINCT k, COUNT(*) AS n FROM t GROUP BY k": "name the columns in GROUP BY",
    "SELECT k, COUNT(*) AS n FROM t ^PARTITION BY k": "keyed by GROUP BY",
    "SELECT k, SUM(v) OVER (ORDER BY ts) AS n FROM t ^GROUP BY k": "GROUP BY with OVER",
    "^INSERT INTO u SELECT k, COUNT(*) AS n FROM t GROUP BY k": "writeStream",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ^window(ts, '5 minutes')": "say WINDOW TUMBLING",
    # key sets
    "SELECT ^ROLLUP (k), COUNT(*) AS n FROM t GROUP BY k": "stands under GROUP BY",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k ^GROUPING SETS (k, ())": r"stands under GROUP BY.*GROUPING SETS \(\(region",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k ^WITH ROLLUP": r"write GROUP BY ROLLUP \(region, city\)",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP ^k": r"expected \(",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ^(k,, ())": "an expression is missing",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ^CUBE (a, b, c, d, e, f, g)": "128 sets.*name those that are read",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ^CUBE (a, b, c, d), CUBE (e, f, g)": "128 sets.*name those that are read",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ^GROUPING SETS (k, (k))": r"the set \(k\) is there twice",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k, ^ROLLUP (K)": r"the set \(k\) is there twice",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ^GROUPING SETS ((), ())": r"the set \(\) is there twice",
    "SELECT COUNT(*) AS n FROM t GROUP BY ROLLUP (^k)": "k is under GROUP BY but not in the SELECT list",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (k, ^COUNT(*))": "COUNT under GROUP BY",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (^1)": "name the expressions",
    "SELECT k, ^GROUPING(k) AS g, COUNT(*) AS n FROM t GROUP BY k": "it tells totals from other groups.*leave it out",
    "SELECT k, GROUPING(^GROUPING_ID()) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP (k)": "is not under GROUP BY.*name one of k",
    "SELECT k, 1 + GROUPING_ID(k, ^v) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP (k)": "v is not under GROUP BY.*name one of k",
    "SELECT k, SUM(^GROUPING(k)) AS n FROM t GROUP BY ROLLUP (k)": "it tells totals from other groups",
    "SELECT k, COUNT(*) AS n FROM t WHERE ^GROUPING(k) = 1 GROUP BY ROLLUP (k)": "it tells totals from other groups",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (k, ^GROUPING(k))": "it tells totals from other groups",
    "SELECT ^v, COUNT(*) AS n FROM t GROUP BY ROLLUP (k)": "v is neither under GROUP BY",
    "SELECT k, COUNT(*) * ^rand() AS n FROM t GROUP BY k": "changes between calls",
    "SELECT k, ^now() AS at, COUNT(*) AS n FROM t GROUP BY k": "changes between calls",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING ^current_date > DATE '2024-01-01'": "changes between calls",
}


@pytest.mark.parametrize("text", REFUSED)
def test_errors_mark_the_position_and_name_the_fix(text):
    at, said = text.index("^"), text.replace("^", "", 1)
    with pytest.raises(bm.SqlError, match=f"(?s){REFUSED[text]}") as raised:
        sql(said)
    assert (raised.value.line, raised.value.column) in {(1, at + 1), (1, max(1, at))}, str(raised.value)
    _, line, mark = str(raised.value).split("\n")
    assert line == f"    {said}"
    assert mark.index("^") == 4 + raised.value.column - 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((f"{word} x", says) for word, says in STATEMENTS.items()),
        *((f"CREATE {word} x", says) for word, says in CREATED.items()),
        *((f"CREATE TABLE t WITH ({word} = 1) AS SELECT k", says) for word, says in PROPERTIES.items() if says),
    ],
)
def test_a_word_of_ksqldb_that_is_not_taken_has_its_own_reason(text, says):
    with pytest.raises(bm.SqlError, match=re.escape(says)):
        sql(text)


def test_the_line_is_the_users():
    with pytest.raises(bm.SqlError) as raised:
        sql("-- too few\nSELECT k, COUNT(*) AS n\n\tFROM t WINDOW TUMBLING (SIZE 5 YEARS)\nGROUP BY k")
    says, *shown = str(raised.value).splitlines()
    assert says.startswith(
        "line 3, column 33: SIZE: expected a unit, one of DAY, HOUR, MINUTE, SECOND, MILLISECOND, with or without S"
    )
    assert shown == ["    \tFROM t WINDOW TUMBLING (SIZE 5 YEARS)", "    \t                               ^"]
    assert (raised.value.line, raised.value.column) == (3, 33)
    assert isinstance(raised.value, bm.BeamishError)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.line, copy.column) == (str(raised.value), 3, 33)


@pytest.mark.parametrize(
    ("expression", "row", "column", "says"),
    [
        ("SUM(v / w)", {"v": 1, "w": 0}, 17, "division by zero.*NULLIF"),
        ("SUM(v + 9223372036854775807)", {"v": 1}, 17, "overflow"),
        ("SUM(CAST(v AS BIGINT))", {"v": "x"}, 15, "cannot be CAST AS BIGINT"),
        ("SUM(soundex(v))", {"v": "x"}, 15, "SOUNDEX: only Spark computes this"),
        ("SUM(try_cast(v AS INT))", {"v": "x"}, 15, "TRY_CAST: only Spark computes this"),
        ("MAX(v RLIKE 'a')", {"v": "x"}, 15, "v RLIKE 'a': only Spark computes this"),
        ("MAX(v LIKE ANY ('a', 'b'))", {"v": "x"}, 15, r"v LIKE ANY \('a', 'b'\): only Spark computes this"),
        ("MAX(abs(v)::decimal)", {"v": 1}, 15, "abs\\(v\\)::decimal: only Spark computes this"),
        ("MAX(array_length(v))", {"v": [1]}, 15, r"ARRAY_LENGTH: Spark writes this function of ksqlDB as SIZE\(a\)"),
        ("MAX(geo_distance(v))", {"v": 1}, 15, "GEO_DISTANCE: neither Spark nor bm.sql has"),
        ("MAX(iif(v, 1, 2))", {"v": True}, 15, "IIF: an unknown function; the nearest that is known is IF;"),
        ("MAX(convert(v, INT))", {"v": 1}, 15, "CONVERT: an unknown function"),
        ("COUNT(v || v + 1)", {"v": "x"}, 17, "must be a number"),
        ("SUM(miss + 1)", {"v": 1}, 15, r"there is no column 'miss'; the columns are \['ts', 'k', 'v'\]"),
        ("SUM_LIST(v)", {"v": 1}, 19, "must be an array of whole numbers"),
        ("SUM_LIST(v)", {"v": [2**63 - 1, 1]}, 19, "does not fit|overflow|out of range|too large"),
        ("MAX(MAP(v, 1)['a'])", {"v": None}, 15, "a key is null"),
        ("MAX(MAP(v, 1, 'a', 2)['a'])", {"v": "a"}, 15, "a key is there twice"),
        ("SUM(miss)", {"v": 1}, 15, "there is no column 'miss'"),
        ("MAX(k.city)", {"v": 1}, 15, "there is no field 'city'"),
        ("SUM(IF(v, 1, 2))", {"v": 1}, 18, "where a condition must stand"),
        ("SUM(v + k)", {"v": 1}, 17, "must be a number"),
        ("SUM(`v + 1` + v + 1)", {"v + 1": 1, "v": 1}, None, None),
        ("SUM(v + 1)", {"v + 1": 1, "v": 1}, 15, "rename the column"),
    ],
)
def test_unsupported_functions_have_a_position(expression, row, column, says):
    query = sql(f"SELECT k, {expression} AS n FROM t GROUP BY k")
    script = TestStream().add([{"ts": 1, "k": "a", **row}])
    if says is None:
        assert query.run(script)
        return
    with pytest.raises(bm.SqlError, match=f"(?s){says}") as raised:
        query.run(script)
    assert abs(raised.value.column - column) <= 2, str(raised.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"aggregates": {"SUM": Sum}}, "'SUM' is an aggregate of bm.sql"),
        ({"aggregates": {"a b": Sum}}, "must be a plain name"),
        ({"aggregates": {"BEST": Count()}}, "must be a function of the name of a column"),
        ({"with_dropped": 1}, "must be True or False"),
        ({"on_error": "skip"}, "must be 'fail', which stops the query, or 'drop'"),
    ],
)
def test_arguments_are_checked(options, says):
    with pytest.raises(bm.OptionError, match=says):
        sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", **options)


def test_invalid_arguments_are_rejected():
    with pytest.raises(bm.OptionError, match="must be text"):
        sql(3)
    with pytest.raises(bm.OptionError, match=r"bm\.BoundedOutOfOrderness"):
        bm.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", event_time="ts", watermark=30)
    with pytest.raises(bm.SqlError, match="gave 3; it must give an accumulation"):
        sql("SELECT k, BEST(v) AS n FROM t GROUP BY k", aggregates={"BEST": lambda _: 3})
    with pytest.raises(bm.SqlError, match=r"BEST\('v', 'w'\): .*argument"):
        sql("SELECT k, BEST(v, w) AS n FROM t GROUP BY k", aggregates={"BEST": Sum})
    with pytest.raises(bm.ScriptError, match="must be a script"):
        sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k").run([])


WHOLE = (
    "CREATE TABLE v AS SELECT upper(k) AS k, COUNT(*) AS n, SUM(a + 1) / 2 AS `half`, WINDOWSTART AS w\nFROM t AS p "
    "WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES, RETENTION 1 DAY, GRACE PERIOD 3 SECONDS) -- hops\n"
    "WHERE a <> 'x''y' AND b IN (1, 2) OR CASE WHEN a IS NULL THEN TRUE ELSE p.b BETWEEN 1 AND 2 END\n"
    "GROUP BY upper(k) HAVING COUNT(DISTINCT a, b) > 3 EMIT CHANGES RETRACTING EVERY 10 SECONDS;"
)
WORDS = sorted(
    {
        *WHOLE.split(),
        *"(),;.*'`\"/+-=<>",
        "--",
        "/*",
        "*/",
        "SELECT",
        "JOIN",
        "WINDOW w AS (",
        "ORDER BY",
        "x -> y",
        "\ue000",
        "é",
        "\n",
        "[",
        "{",
    }
)


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)))
def test_a_text_that_is_cut_raises_sql_error_and_nothing_else(start, end):
    is_a_statement_or_sql_error(WHOLE[start:end])


@given(st.lists(st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 12), st.sampled_from(WORDS)), max_size=4))
@example([(0, 200, "")])
def test_a_text_that_is_garbled_raises_sql_error_and_nothing_else(changes):
    text = WHOLE
    for at, length, word in changes:
        text = text[:at] + word + text[at + length :]
    is_a_statement_or_sql_error(text)


@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join) | st.text(max_size=40))
def test_words_thrown_together_raise_sql_error_and_nothing_else(text):
    is_a_statement_or_sql_error(text)
    is_a_statement_or_sql_error(f"SELECT k, COUNT(*) AS n, {text} FROM t GROUP BY k")


ODD = {
    "b": "x",
    "c": None,
    "x": {"a": 1},
    "y": [1, None],
    "s": 7,
    "r": True,
    "n": date(2024, 1, 1),
    "p": 1,
    "q": "TRUE",
    "t": 0.5,
    "u": datetime(2024, 1, 1, tzinfo=UTC),
    "d": Decimal("1.5"),
    "m": {"a": {"b": [1]}},
}


@given(expressions(), expressions(), st.sampled_from(["MAX", "COLLECT_LIST", "ATTR", "COUNT"]))
def test_expressions_over_values_of_other_types_raise_errors_of_beamish_and_nothing_else(group, value, aggregate):
    query = sql(f"SELECT {group} AS g, {aggregate}({value}) AS v FROM t GROUP BY {group}")
    with suppress(bm.BeamishError):
        query.run(TestStream().add([{"ts": 1, **ODD}]))


def is_a_statement_or_sql_error(text):
    try:
        assert sql(text).pipeline.explain()
    except bm.SqlError as error:
        place = error.line, error.column
    else:
        return
    lines = text.split("\n")
    assert (1, 1) <= place <= (max(1, len(lines)), max(1, len(lines[place[0] - 1]) + 1))


def test_without_sqlglot_the_package_imports_and_sql_explains_how_to_install_it():
    program = """
import sys
sys.modules["sqlglot"] = None
import beamish as bm
try:
    bm.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", event_time="ts", watermark=bm.BoundedOutOfOrderness(0))
except bm.OptionError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install sqlglot (the extra 'sql')" in done.stdout


def test_a_compiled_sqlglot_is_refused_with_the_lines_that_replace_it(monkeypatch):
    monkeypatch.setattr("sqlglot.parser.__file__", "/lib/sqlglot/parser.cpython-311-x86_64-linux-gnu.so")
    with pytest.raises(bm.OptionError, match="pip uninstall sqlglotc"):
        sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k")


ARGUMENTS = {
    **dict.fromkeys(
        [
            "SUM",
            "MIN",
            "MAX",
            "AVG",
            "MEAN",
            "VARIANCE",
            "VAR_SAMP",
            "VAR_POP",
            "STDDEV",
            "STDDEV_POP",
            "COLLECT_LIST",
            "COLLECT_SET",
            "MEDIAN",
            *("SKEWNESS", "KURTOSIS", "PRODUCT", "MODE", "BIT_AND", "BIT_OR", "BIT_XOR"),
            *("BOOL_AND", "EVERY", "BOOL_OR", "COUNT_IF"),
        ],
        1,
    ),
    **dict.fromkeys(["COVAR_SAMP", "COVAR_POP", "REGR_COUNT", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"], 2),
    **dict.fromkeys(["REGR_AVGX", "REGR_AVGY", "REGR_SXX", "REGR_SYY", "REGR_SXY"], 2),
    **dict.fromkeys(["ATTR", "COUNT_DISTINCT", "STDDEV_SAMPLE"], 1),
    **dict.fromkeys(["EARLIEST_BY_OFFSET", "LATEST_BY_OFFSET"], 3),
    **dict.fromkeys(["HISTOGRAM", "SUM_LIST"], 1),
    **dict.fromkeys(["CORRELATION", "CORR"], 2),
    **dict.fromkeys(["MIN_BY", "MAX_BY", "FIRST", "LAST", "APPROX_COUNT_DISTINCT", "PERCENTILE", "TOPKDISTINCT"], 2),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_aggregate_takes_no_more_arguments_than_it_has(name):
    arguments = ", ".join("abcd"[: ARGUMENTS[name] + 1])
    text = f"SELECT k, {name}({arguments}) AS v FROM t WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY k EMIT FINAL"
    with pytest.raises(bm.SqlError, match=rf"{name} takes .*, not {ARGUMENTS[name] + 1}"):
        bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0))


TYPED_WRONGLY = {
    "SELECT ARRAY[a, b] AS x, COUNT(*) AS n FROM t GROUP BY ^ARRAY[a, b]": r"list<item: int64> cannot be a key; cast it",
    "SELECT l, COUNT(*) AS n FROM t GROUP BY ^l EMIT CHANGES": "cannot be a key",
    "SELECT k, COUNT(*) + ^SUM(k) AS x FROM t GROUP BY k": "column 'k' is string, and must be a number",
    "SELECT k, COUNT(*) AS x FROM t GROUP BY k HAVING ^AVG(upper(k)) > 1": "is string, and must be a number",
    "SELECT ^SUM(k) AS x, k FROM versions GROUP BY k": "must be a number",
    "SELECT t.k FROM t JOIN u WITHIN 1 HOUR ON t.k = ^u.a": "u's|keys must have the same type",
    "SELECT t.k FROM t JOIN u WITHIN 1 HOUR ON ^t.l = u.l": "cannot be a key",
    "SELECT t.k FROM t JOIN versions v ON ^t.a = v.k": "they must have the same type",
}


@pytest.mark.parametrize("text", TYPED_WRONGLY)
def test_columns_of_a_wrong_type_are_reported_at_their_place(text):
    rows = [{"ts": 1, "k": "x", "a": 1, "b": 2, "l": [1]}]
    watermark = bm.BoundedOutOfOrderness(0)
    versions = bm.Pipeline().event_time("ts", watermark).key_by("k").versions("1 day")
    query = bm.sql(text.replace("^", ""), event_time="ts", watermark=watermark, tables={"versions": versions})
    script = bm.testing.TestStream()
    for source in query.pipeline.flow.sources:
        script = script.add(rows, input=source.name) if source.name else script.add(rows)
    with pytest.raises(bm.SqlError, match=TYPED_WRONGLY[text]) as raised:
        query.run(script)
    assert raised.value.column == text.index("^") + 1


def test_an_error_without_a_place_in_the_text_stays_as_it_is():
    query = bm.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", event_time="at", watermark=bm.BoundedOutOfOrderness(0))
    with pytest.raises(bm.ColumnError, match="'at'"):
        query.run(bm.testing.TestStream().add([{"ts": 1, "k": 1}]))
