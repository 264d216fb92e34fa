"""Query: a SQL statement as a pipeline with computations before and after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from beamish.accumulations.base.accumulation import Accumulation
from beamish.durations import Duration
from beamish.errors import OptionError, ScriptError
from beamish.kernels.identity import Named
from beamish.pane import Pane, PaneList
from beamish.pipeline import Pipeline
from beamish.testing.stream import Scripted, TestStream
from beamish.watermarks import Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from beamish.statement.compile import Compiled
    from beamish.statement.grammar.clauses import DialectName, Kind, Refinement

    UserAggregate = Callable[..., Accumulation]


def _named(given: Any) -> Any:
    return Named(given) if isinstance(given, Mapping) else given


@attrs.frozen(repr=False)
class Query:
    """A SQL statement, created by ``bm.sql``.

    It is applied to a streaming or batch DataFrame (``df.transform(query)``), and to a scripted test stream without Spark
    (``query.run(script)``).

    Attributes:
        text: the statement.
        event_time: the event-time column; of a join also by the name of the stream.
        watermark: its policy, likewise.
        tables: the tables by name.
        aggregates: custom aggregates by name.
        with_dropped: whether dropped rows are emitted.
        on_error: the handling of rows that cause errors in an aggregate.
        offset: the column by which ``EARLIEST_BY_OFFSET`` and ``LATEST_BY_OFFSET`` order rows.
        dialect: "ksqldb" or "flink".
    """

    text: str
    event_time: Any = attrs.field(kw_only=True, default=None, converter=_named)
    watermark: Watermark | Mapping[str, Watermark] | None = attrs.field(kw_only=True, default=None, converter=_named)
    tables: Mapping[str, Pipeline] = attrs.field(kw_only=True, factory=dict, converter=_named)
    aggregates: Mapping[str, UserAggregate] = attrs.field(kw_only=True, factory=dict, converter=_named)
    with_dropped: bool = attrs.field(kw_only=True, default=False)
    on_error: Literal["fail", "drop"] = attrs.field(kw_only=True, default="fail")
    offset: str | None = attrs.field(kw_only=True, default=None)
    dialect: DialectName = attrs.field(kw_only=True, default="ksqldb")
    _compiled: Compiled = attrs.field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_compiled", _compile(self))

    def __reduce__(self) -> tuple[Any, ...]:
        options = attrs.asdict(self, recurse=False, filter=lambda field, _: field.init and field.name != "text")
        plain = {name: dict(given) if isinstance(given, Named) else given for name, given in options.items()}
        return _query, (self.text, plain)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline between WHERE and HAVING with the SELECT list."""
        return self._compiled.pipeline

    @property
    def kind(self) -> Kind:
        """``persistent`` with CREATE TABLE, ``push`` with EMIT alone, else ``pull``."""
        return self._compiled.read.emit.kind

    @property
    def refinement(self) -> Refinement:
        """``changes`` or ``final``; a pull query is final."""
        return self._compiled.read.emit.refinement

    @property
    def retention(self) -> Duration | None:
        """The RETENTION of the WINDOW clause; it has no effect."""
        return self._compiled.read.windows.retention

    @property
    def name(self) -> str | None:
        """The table of CREATE TABLE; None without."""
        return self._compiled.read.name

    @property
    def properties(self) -> Mapping[str, Any]:
        """The names and formats under WITH; they have no effect."""
        return self._compiled.read.properties

    def apply(self, df: DataFrame | None = None, *, shards: int | None = None, **inputs: DataFrame) -> DataFrame:
        """Apply it to a streaming or batch DataFrame; lazy, output mode append.

        Args:
            df: the rows of the source.
            inputs: for a join, in place of ``df``: a DataFrame for each source, by its name after FROM or JOIN.
            shards: number of state partitions, at least 1; default ``spark.sql.shuffle.partitions``. Fixed for the life of the checkpoint.

        Returns:
            the SELECT list, ``window struct<start, end>``, ``pane struct<kind, timing, index, on_time_index, is_first,
            is_last, change, sequence, watermark>``, ``timestamp``; with ``with_dropped`` also ``dropped``. A pane sets its group
            and window, a retraction removes it.

        Raises:
            SqlError: an unknown column or function, or the query is a pull query and the DataFrame streams.
            ColumnError, PipelineError, SparkSetupError: as for ``Pipeline.apply``.
        """
        self._check_pull(df, inputs)
        from beamish.spark.statement import apply

        with self._compiled.placed():
            return apply(self._compiled, df, inputs, shards)

    __call__ = apply

    def run(self, test_stream: TestStream) -> list[Pane]:
        """Run a script in process, without Spark.

        Args:
            test_stream: the script. For a pull query all its rows are one table, and clock updates are ignored.

        Returns:
            panes, retractions and, with ``with_dropped``, dropped rows, in the order of emission. A pane's ``key`` has the items
            of the SELECT list that are in GROUP BY, its ``values`` the others.

        Raises:
            SqlError: an unknown column, an expression that only Spark can compute, or one that fails on a value.
            ColumnError, ScriptError: as for ``Pipeline.run``.
        """
        script = self.scripted(test_stream)
        with self._compiled.placed():
            panes = self.pipeline.run(TestStream(tuple(script.events)))
        return PaneList(script.shown(panes))

    def scripted(self, test_stream: TestStream) -> Scripted:
        """The query on a script, for ``TestStream.trace`` and ``TestStream.on_spark``."""
        if not isinstance(test_stream, TestStream):
            raise ScriptError(
                f"run({test_stream!r}): must be a script, such as bm.testing.TestStream().add([{{'ts': 1}}])"
            )
        from beamish.statement.running import ScriptedStatement

        return ScriptedStatement.of(self._compiled, test_stream)

    def explain(self, df: DataFrame | None = None, **inputs: DataFrame) -> str:
        """Explain the statement: before, in and after the pipeline, and defaults of the text.

        Args:
            df: the DataFrame it would be applied to, for its column types; optional.
            inputs: for a join, in place of ``df``.

        Returns:
            text, in blocks.

        Raises:
            SqlError, ColumnError: as for ``apply``.
        """
        from beamish.statement.compile import explained

        if df is None and not inputs:
            return explained(self._compiled, self.pipeline.explain())
        self._check_pull(df, inputs)
        from beamish.spark.statement import prepared

        df, inputs = prepared(self._compiled, df, inputs)
        with self._compiled.placed():
            return explained(self._compiled, self.pipeline.explain(df, **inputs))

    def _check_pull(self, df: DataFrame | None, inputs: Mapping[str, DataFrame]) -> None:
        if self.kind == "pull" and any(getattr(one, "isStreaming", False) for one in (df, *inputs.values())):
            raise _text(self.text).error(
                self._compiled.read.end,
                "no EMIT: such a query asks a batch DataFrame once; for a stream set the emitted rows: EMIT CHANGES (every "
                "change) or EMIT FINAL (one row when the window is over)",
            )

    def __repr__(self) -> str:
        said = f"sql({self.text!r}"
        said += "" if self.event_time is None else f", event_time={self.event_time!r}"
        said += "" if self.watermark is None else f", watermark={self.watermark!r}"
        said += f", tables={dict(self.tables)!r}" if self.tables else ""
        said += f", aggregates={dict(self.aggregates)!r}" if self.aggregates else ""
        said += ", with_dropped=True" if self.with_dropped else ""
        said += "" if self.offset is None else f", offset={self.offset!r}"
        said += f", dialect={self.dialect!r}" if self.dialect != "ksqldb" else ""
        return said + (f", on_error={self.on_error!r}" if self.on_error != "fail" else "") + ")"


def sql(
    text: str,
    *,
    event_time: Any = None,
    watermark: Watermark | Mapping[str, Watermark] | None = None,
    tables: Mapping[str, Pipeline] | None = None,
    aggregates: Mapping[str, UserAggregate] | None = None,
    with_dropped: bool = False,
    on_error: Literal["fail", "drop"] = "fail",
    offset: str | None = None,
    dialect: DialectName = "ksqldb",
) -> Query:
    """Create a pipeline from a SQL statement, which emits every change or only the final row (docs/sql.md).

    Args:
        text: ``SELECT ... FROM ... [WINDOW ...] [WHERE ...] GROUP BY ... [HAVING ...] [EMIT CHANGES | EMIT FINAL]``, after
            ``CREATE TABLE name AS`` or not. The name after FROM is a name only: the rows are the DataFrame's.
        event_time: the event-time column; on Spark also a Column expression. For a join also a dict by the name of the stream.
        watermark: a policy, such as ``bm.BoundedOutOfOrderness("30 seconds")``; for a join also a dict.
        tables: by name pipelines that end in ``versions`` or ``upserts``: GROUP BY over one groups its latest rows, and a stream is
            joined with those that end in ``versions``. Their event times and watermarks are their own.
        aggregates: custom aggregates: by name a function of column names that returns an accumulation.
        with_dropped: whether to emit dropped rows, with the reason and the original row.
        on_error: as for ``Pipeline.on_error``: the handling of rows that cause errors in an aggregate. Errors in Spark's
            expressions stop the query.
        offset: the column by which ``EARLIEST_BY_OFFSET`` and ``LATEST_BY_OFFSET`` order the rows of a group, such as Kafka's
            ``offset``; None: these are refused.
        dialect: "ksqldb", or "flink" (docs/flink-sql.md), in which the text may declare event time and watermark itself:
            ``CREATE TABLE ... WATERMARK FOR ts AS ts - INTERVAL '5' SECOND``.

    Returns:
        the query, a value: ``.apply(df)``, ``.run(script)``, ``.explain()``, ``.pipeline``.

    Raises:
        SqlError: the statement is invalid.
        OptionError: an argument is invalid, or sqlglot is not installed.

    Example:
        >>> import beamish as bm
        >>> views = bm.sql(
        ...     '''SELECT region, COUNT(*) AS views FROM pageviews
        ...        WINDOW TUMBLING (SIZE 5 MINUTES) GROUP BY region EMIT FINAL''',
        ...     event_time="ts",
        ...     watermark=bm.BoundedOutOfOrderness("30 seconds"),
        ... )
        >>> script = bm.testing.TestStream().add([{"ts": 10, "region": "eu"}, {"ts": 20, "region": "eu"}])
        >>> [(pane.key, pane.values) for pane in views.run(script.advance_watermark_to(300))]
        [({'region': 'eu'}, {'views': 2})]
    """
    return Query(
        text,
        event_time=event_time,
        watermark=watermark,
        tables={} if tables is None else tables,
        aggregates={} if aggregates is None else aggregates,
        with_dropped=with_dropped,
        on_error=on_error,
        offset=offset,
        dialect=dialect,
    )


def _query(text: str, options: Mapping[str, Any]) -> Query:
    return Query(text, **options)


def _text(sql: str) -> Any:
    from beamish.statement.grammar.text import Text

    return Text(sql)


def _compile(query: Query) -> Compiled:
    try:
        from sqlglot import parser
    except ModuleNotFoundError:
        raise OptionError(
            "sql(...): the package sqlglot is not installed: pip install sqlglot (the extra 'sql')"
        ) from None
    if not str(parser.__file__).endswith(".py"):
        raise OptionError(
            "sql(...): sqlglot is compiled here (sqlglotc), and its parser cannot be extended: pip uninstall sqlglotc, then "
            "pip install --force-reinstall sqlglot"
        )
    if not isinstance(query.text, str):
        raise OptionError(f"sql({query.text!r}): must be text: a statement that begins with SELECT or CREATE TABLE")
    if not isinstance(query.with_dropped, bool):
        raise OptionError(f"sql(with_dropped={query.with_dropped!r}): must be True or False")
    if query.dialect not in ("ksqldb", "flink"):
        raise OptionError(f"sql(dialect={query.dialect!r}): must be 'ksqldb' or 'flink'")
    for name in ("event_time", "watermark"):
        if query.dialect == "ksqldb" and getattr(query, name) is None:
            raise OptionError(
                f"sql({name}=None): the statement has no clause for it; give bm.sql(..., event_time='ts', "
                "watermark=bm.BoundedOutOfOrderness('30 seconds'))"
            )
    from beamish.statement.compile import compiled
    from beamish.statement.grammar.aggregates import checked_aggregates
    from beamish.statement.inputs import Sources

    aggregates = checked_aggregates(query.aggregates)
    sources = Sources(query.event_time, query.watermark, query.tables, query.on_error, query.with_dropped, query.offset)
    return compiled(_text(query.text), sources, aggregates, query.dialect)
