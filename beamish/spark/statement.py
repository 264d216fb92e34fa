"""SQL statements on Spark: WHERE, HAVING and the SELECT list as DataFrame operations around the pipeline.

Expressions are Spark's own. Spark's errors are reported with the position in the user's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.addresses import printable
from beamish.contract.relation import Ledger
from beamish.errors import PipelineError, SqlError
from beamish.flow import Flow
from beamish.kernels.column_names import quoted
from beamish.pane import PaneChange
from beamish.spark import apply as apply_flow
from beamish.spark.rows.columns import NOT_REPLAYED, column, is_deterministic
from beamish.spark.rows.schemas import is_on

_BESIDE = ("window", "pane", "timestamp", "dropped")


class Expression(Protocol):
    """An expression, as needed for Spark."""

    @property
    def name(self) -> str: ...
    @property
    def sql(self) -> str: ...
    def error(self, says: str) -> SqlError:
        """The error for this position."""


class Shown(Protocol):
    """An item of the SELECT list."""

    @property
    def expression(self) -> Expression: ...
    @property
    def is_key(self) -> bool: ...
    @property
    def key(self) -> str | None: ...


class Rows(Protocol):
    """The name of the rows."""

    @property
    def name(self) -> str: ...
    @property
    def alias(self) -> str: ...


class Input(Protocol):
    """A stream of a statement."""

    @property
    def rows(self) -> Rows: ...
    @property
    def where(self) -> Expression | None: ...
    @property
    def columns(self) -> Sequence[Expression]: ...
    @property
    def computed(self) -> Sequence[Expression]: ...
    @property
    def added(self) -> Sequence[str]: ...


class Side(Protocol):
    """An input of a join."""

    @property
    def alias(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def keys(self) -> Mapping[str, str]: ...
    @property
    def path(self) -> tuple[str, ...]: ...
    @property
    def time(self) -> str | None: ...
    @property
    def bounds(self) -> Mapping[str, str]: ...


class Joined(Protocol):
    """A join."""

    @property
    def sides(self) -> Sequence[Side]: ...
    def single(self, columns: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        """The columns that only one input has, and its alias."""


class Declared(Protocol):
    """A pipeline, as needed to apply it."""

    @property
    def flow(self) -> Flow: ...


class Statement(Protocol):
    """A compiled statement."""

    @property
    def inputs(self) -> Sequence[Input]: ...
    @property
    def joined(self) -> Joined | None: ...
    @property
    def pipeline(self) -> Declared: ...
    @property
    def having(self) -> Expression | None: ...
    @property
    def rows_within(self) -> str | None:
        """The struct column of panes with the columns of rows; None: the panes have them."""

    def shown(self, columns: Mapping[str, Sequence[str]]) -> Sequence[Shown]:
        """The items of the SELECT list, of a join over inputs with these columns."""


Frames = dict[str, DataFrame]

_TEXT = re.compile(
    r"""`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<raw>[rR](?:'[^']*'|"[^"]*"))|(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")""",
    re.DOTALL,
)
"""A string literal, a quoted name or a comment."""
_READ_OTHERWISE: Mapping[str, tuple[re.Pattern[str], str]] = {
    "spark.sql.ansi.doubleQuotedIdentifiers": (re.compile('[rR]?"'), "text in double quotes is a name"),
    "spark.sql.parser.escapedStringLiterals": (re.compile(r"['\"].*\\", re.DOTALL), "a backslash is itself"),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": (
        re.compile("'.*''.*'|\".*\"\".*\"", re.DOTALL),
        "a doubled quote is dropped",
    ),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": (
        re.compile(r"[0-9.]+[eE]"),
        "a number with an exponent is a decimal",
    ),
}
"""Settings under which Spark reads some literals otherwise than ``bm.sql``: which, and how."""


def apply(statement: Statement, df: DataFrame | None, inputs: Frames, shards: int | None) -> DataFrame:
    """Apply a statement.

    Args:
        statement: the statement.
        df: the rows of its source.
        inputs: in place of ``df`` the rows of the sources of a join.
        shards: as for ``Pipeline.apply``.

    Raises:
        SqlError: Spark does not know a column or function, or rejects an expression.
        PipelineError, ColumnError, OptionError, SparkSetupError: as for ``Pipeline.apply``.
    """
    rows, named = prepared(statement, df, inputs)
    panes = apply_flow(statement.pipeline.flow, rows, named, shards)
    columns: dict[str, Sequence[str]] = {}
    if statement.joined is not None:
        computed = {one.name for input_ in statement.inputs for one in input_.computed}
        panes, columns = _scope(statement.joined, panes, {name: one.drop(*computed) for name, one in named.items()})
    elif rows is not None:
        within = statement.rows_within
        own = panes if within is None else panes.select(f"{quoted(within)}.*")
        columns = {"": [name for name in rows.columns if name in {*panes.columns, *own.columns}]}
    return _shown(statement, _kept(statement, panes), statement.shown(columns))


def prepared(statement: Statement, df: DataFrame | None, inputs: Frames) -> tuple[DataFrame | None, Frames]:
    """The input rows of the pipeline, with the columns computed for it.

    Raises:
        SqlError: Spark does not know a column or function, or rejects an expression.
    """
    if statement.joined is not None or len(statement.pipeline.flow.sources) > 1:
        made = {one.rows.name: one for one in statement.inputs if isinstance(inputs.get(one.rows.name), DataFrame)}
        return df, {name: _prepared(made[name], one) if name in made else one for name, one in inputs.items()}
    if not isinstance(df, DataFrame) or inputs:
        raise PipelineError(f"apply({printable(df)}): the statement has one source, a DataFrame: apply(df)")
    return _prepared(statement.inputs[0], df), {}


def _prepared(one: Input, df: DataFrame) -> DataFrame:
    rows = df.alias(one.rows.alias)  # by which columns may be qualified
    if one.where is not None:
        rows = rows.where(_condition(rows, one.where))
    for expression in one.computed:
        if any(name.lower() == expression.name.lower() for name in df.columns):
            raise expression.error(
                f"the rows have a column {expression.name!r}, the internal name of this expression; rename the column"
            )
    if one.computed:
        rows = rows.withColumns({made.name: _expression(rows, made) for made in one.computed})
    for expression in one.columns:
        rows = _spelled(rows, expression)
    return rows


def _scope(joined: Joined, panes: DataFrame, rows: Frames) -> tuple[DataFrame, dict[str, Sequence[str]]]:
    """Joined rows with a struct for each side, and the columns that only one has; and the columns of each side, by alias."""
    columns: dict[str, Sequence[str]] = {}
    made: dict[str, Column] = {}
    for side in joined.sides:
        if not side.path:
            fields = [(name, column(name)) for name in rows[side.name].columns]
            present = F.lit(True)  # noqa: FBT003 - Spark's
        else:
            held = reduce(lambda of, name: of[name], side.path[1:], column(side.path[0]))
            type_ = reduce(_field_type, side.path, panes.schema)
            present = held.isNotNull()
            names = list(rows[side.name].columns) if len(side.path) > 1 else [*side.keys, *type_.names]
            fields = [(name, column(side.keys[name]) if name in side.keys else held[name]) for name in names]
            fields += [(name, _bound(which)) for name, which in side.bounds.items()]
        columns[side.alias] = [name for name, _ in fields]
        made[side.alias] = F.when(present, F.struct(*(value.alias(name) for name, value in fields)))
    single = {name: made[alias][name] for name, alias in joined.single(columns).items()}
    beside = {name: column(name) for name in _BESIDE if name in panes.columns}
    times = [made[side.alias][side.time] for side in joined.sides if side.time is not None]
    if times:  # the later of both, as in ksqlDB; a dropped row has neither
        beside["timestamp"] = F.coalesce(F.greatest(*times), beside["timestamp"])
    metadata = {name: panes.schema[name].metadata for name in beside}
    taken = {name.lower() for name in _BESIDE}
    shown = {**{name: one for name, one in single.items() if name.lower() not in taken}, **made}
    rows_ = (one.alias(name) for name, one in shown.items())
    return panes.select(*rows_, *(one.alias(name, metadata=metadata[name]) for name, one in beside.items())), columns


def _bound(which: str) -> Column:
    """A bound of the window; its "time" is the last millisecond in it."""
    return column("window")[which] if which != "time" else column("window")["end"] - F.expr("INTERVAL '0.001' SECOND")


def _field_type(struct: Any, name: str) -> Any:
    return struct[name].dataType


def _spelled(rows: DataFrame, expression: Expression) -> DataFrame:
    """The rows with a column in the statement's spelling."""
    if expression.name in rows.columns:
        return rows
    case_matters = is_on(rows.sparkSession, "spark.sql.caseSensitive")
    alike = [] if case_matters else [name for name in rows.columns if name.lower() == expression.name.lower()]
    if len(alike) != 1:
        raise expression.error(f"there is no column {expression.name!r}; the columns are {rows.columns}")
    return rows.withColumnRenamed(alike[0], expression.name)


def _kept(statement: Statement, panes: DataFrame) -> DataFrame:
    """The panes that satisfy HAVING, and dropped rows."""
    if statement.having is None:
        return panes
    condition = _condition(panes, statement.having)
    if "dropped" in panes.columns:
        condition = (F.col("pane.kind") == "DROPPED") | condition
    return panes.where(condition)


def _shown(statement: Statement, panes: DataFrame, items: Sequence[Shown]) -> DataFrame:
    with_dropped = "dropped" in panes.columns
    beside = [_pane(statement, panes, items) if name == "pane" else column(name) for name in _BESIDE[:3]]
    shown = [_item(panes, item, with_dropped=with_dropped) for item in items]
    if with_dropped:
        beside.append(_dropped(statement).alias("dropped"))
    return panes.select(*shown, *beside)


def _pane(statement: Statement, panes: DataFrame, items: Sequence[Shown]) -> Column:
    """The column ``pane``, with its metadata under the names of the SELECT list."""
    pane, ledger = F.col("pane"), Ledger.read(panes.schema["pane"].metadata)
    if statement.having is not None:  # the row before or after may be filtered out (docs/rules/panes.md#pane-change)
        alone = F.create_map(*(F.lit(str(word)) for change in PaneChange for word in (change, change.alone)))
        pane = pane.withField("change", alone[pane["change"]])
    if ledger is None:
        return pane.alias("pane")
    names = {item.key: item.expression.name for item in items if item.key is not None}
    return pane.alias("pane", metadata=ledger.renamed(names).metadata)


def _item(panes: DataFrame, item: Shown, *, with_dropped: bool) -> Column:
    expression = _expression(panes, item.expression)
    if with_dropped and not item.is_key:  # nothing to compute for a dropped row
        expression = F.when(F.col("pane.kind") != "DROPPED", expression)
    return expression.alias(item.expression.name)


def _dropped(statement: Statement) -> Column:
    """Dropped rows without the computed columns."""
    dropped = F.col("dropped")
    for one in statement.inputs:
        names = [quoted(name) for name in one.added]
        path = "row" if statement.joined is None else f"row.{quoted(one.rows.name)}"
        dropped = dropped.withField(path, F.col(f"dropped.{path}").dropFields(*names)) if names else dropped
    return dropped


def _expression(df: DataFrame, expression: Expression) -> Column:
    """Resolve an expression against the columns of a DataFrame (SqlError: Spark rejects it)."""
    check_literals(df.sparkSession, expression)
    return _tried(df, expression, lambda made: df.select("*", made))


def _condition(df: DataFrame, expression: Expression) -> Column:
    """Resolve a condition against the rows of a DataFrame (SqlError: Spark rejects it)."""
    check_literals(df.sparkSession, expression)
    return _tried(df, expression, df.where)


def check_literals(spark: SparkSession, expression: Expression) -> None:
    """Check that Spark reads the literals of an expression as a script does (SqlError: a setting of the session changes that)."""
    literals = [found["raw"] or found["text"] or "" for found in _TEXT.finditer(expression.sql)]
    literals += re.findall(r"\b[0-9.]+[eE][+-]?[0-9]+", _TEXT.sub("", expression.sql))
    for name, (pattern, how) in _READ_OTHERWISE.items():
        for literal in filter(pattern.match, literals):
            if is_on(spark, name):
                raise expression.error(
                    f"{literal}: {how} for Spark under {name}, and not for bm.sql; before the query is applied, set\n"
                    f'    spark.conf.set("{name}", "false")'
                )


def _tried(df: DataFrame, expression: Expression, use: Callable[[Column], DataFrame]) -> Column:
    try:
        made = F.expr(expression.sql)
        use(made)
    except Exception as error:  # a ParseException or AnalysisException, and for some texts one of Java's
        words = str(error).strip().partition(" SQLSTATE")[0].partition("\n")[0].rstrip(".; ")
        raise expression.error(f"Spark rejects this: {words}") from error
    if df.isStreaming and not is_deterministic(df, made):
        raise expression.error(f"on a stream this is {NOT_REPLAYED}")
    return made
