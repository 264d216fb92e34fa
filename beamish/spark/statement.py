"""SQL statements on Spark: WHERE, HAVING and the SELECT list as DataFrame operations around the pipeline.

Expressions are Spark's own. Spark's errors are reported with the position in the user's text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from beamish.addresses import printable
from beamish.contract.relation import Ledger
from beamish.errors import PipelineError, SqlError
from beamish.flow import Flow
from beamish.kernels.column_names import quoted
from beamish.pane import PaneChange
from beamish.spark import apply as apply_flow
from beamish.spark.rows.columns import column

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
    def alias(self) -> str: ...


class Declared(Protocol):
    """A pipeline, as needed to apply it."""

    @property
    def flow(self) -> Flow: ...


class Statement(Protocol):
    """A compiled statement."""

    @property
    def rows(self) -> Rows: ...
    @property
    def where(self) -> Expression | None: ...
    @property
    def columns(self) -> Sequence[Expression]: ...
    @property
    def computed(self) -> Sequence[Expression]: ...
    @property
    def pipeline(self) -> Declared: ...
    @property
    def having(self) -> Expression | None: ...
    @property
    def shown(self) -> Sequence[Shown]: ...


def apply(statement: Statement, df: DataFrame, shards: int | None) -> DataFrame:
    """Apply a statement.

    Args:
        statement: the statement.
        df: the rows of its source.
        shards: as for ``Pipeline.apply``.

    Raises:
        SqlError: Spark does not know a column or function, or rejects an expression.
        PipelineError, ColumnError, OptionError, SparkSetupError: as for ``Pipeline.apply``.
    """
    rows = prepared(statement, df)
    panes = apply_flow(statement.pipeline.flow, rows, {}, shards)
    computed = [expression.name for expression in statement.computed]
    return _shown(statement, _kept(statement, panes), computed)


def prepared(statement: Statement, df: DataFrame) -> DataFrame:
    """The input rows of the pipeline, with the columns computed for it.

    Raises:
        SqlError: Spark does not know a column or function, or rejects an expression.
    """
    if not isinstance(df, DataFrame):
        raise PipelineError(f"apply({printable(df)}): the statement has one source, a DataFrame: apply(df)")
    rows = df.alias(statement.rows.alias)  # by which columns may be qualified
    if statement.where is not None:
        rows = rows.where(_condition(rows, statement.where))
    for expression in statement.computed:
        if any(name.lower() == expression.name.lower() for name in df.columns):
            raise expression.error(
                f"the rows have a column {expression.name!r}, the internal name of this expression; rename the column"
            )
    if statement.computed:
        rows = rows.withColumns({one.name: _expression(rows, one) for one in statement.computed})
    for expression in statement.columns:
        rows = _spelled(rows, expression)
    return rows


def _spelled(rows: DataFrame, expression: Expression) -> DataFrame:
    """The rows with a column in the statement's spelling."""
    if expression.name in rows.columns:
        return rows
    case_matters = rows.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
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


def _shown(statement: Statement, panes: DataFrame, computed: Sequence[str]) -> DataFrame:
    made = {"pane": _pane(statement, panes)}
    beside = [made.get(name, column(name)) for name in _BESIDE if name in panes.columns and name != "dropped"]
    with_dropped = "dropped" in panes.columns
    shown = [_item(panes, item, with_dropped=with_dropped) for item in statement.shown]
    if with_dropped:
        beside.append(_without(F.col("dropped"), computed).alias("dropped"))
    return panes.select(*shown, *beside)


def _pane(statement: Statement, panes: DataFrame) -> Column:
    """The column ``pane``, with its metadata under the names of the SELECT list."""
    pane, ledger = F.col("pane"), Ledger.read(panes.schema["pane"].metadata)
    if statement.having is not None:  # the row before or after may be filtered out (docs/rules/panes.md#pane-change)
        alone = F.create_map(*(F.lit(str(word)) for change in PaneChange for word in (change, change.alone)))
        pane = pane.withField("change", alone[pane["change"]])
    if ledger is None:
        return pane.alias("pane")
    names = {item.key: item.expression.name for item in statement.shown if item.key is not None}
    return pane.alias("pane", metadata=ledger.renamed(names).metadata)


def _item(panes: DataFrame, item: Shown, *, with_dropped: bool) -> Column:
    expression = _expression(panes, item.expression)
    if with_dropped and not item.is_key:  # nothing to compute for a dropped row
        expression = F.when(F.col("pane.kind") != "DROPPED", expression)
    return expression.alias(item.expression.name)


def _without(dropped: Column, computed: Iterable[str]) -> Column:
    """Dropped rows without the computed columns."""
    names = map(quoted, computed)
    return dropped.withField("row", dropped["row"].dropFields(*names)) if computed else dropped


def _expression(df: DataFrame, expression: Expression) -> Column:
    """Resolve an expression against the columns of a DataFrame (SqlError: Spark rejects it)."""
    return _tried(expression, lambda made: df.select("*", made))


def _condition(df: DataFrame, expression: Expression) -> Column:
    """Resolve a condition against the rows of a DataFrame (SqlError: Spark rejects it)."""
    return _tried(expression, df.where)


def _tried(expression: Expression, use: Callable[[Column], DataFrame]) -> Column:
    try:
        made = F.expr(expression.sql)
        use(made)
    except Exception as error:  # a ParseException or AnalysisException, and for some texts one of Java's
        words = str(error).strip().partition(" SQLSTATE")[0].partition("\n")[0].rstrip(".; ")
        raise expression.error(f"Spark does not take this: {words}") from error
    return made
