"""The DataFrames of a flow's sources, matched by name, with their columns named; and the initial rows of versioned tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.addresses import printable
from beamish.contract.relation import Ledger, SlotSemantics
from beamish.errors import ColumnError, PipelineError
from beamish.flow import BoundFlow, Flow
from beamish.forms import is_of_panes, not_as_rows
from beamish.kernels.column_names import has_no_event_time
from beamish.source import Source, StoredPanes
from beamish.spark.rows.columns import NamedRows, column, name_columns
from beamish.spark.rows.schemas import DeclaredInputs, Given
from beamish.spark.rows.watermark_column import SourceRows, with_watermark


@attrs.frozen
class NamedInputs:
    """The DataFrames of a flow, and the flow with names for their columns.

    Attributes:
        flow: for a batch reduced to its requirements.
        named: the rows of each source, by name.
        streaming: whether they are streams.
        declared: whether schemas are declared, so that no Spark call may be made.
    """

    flow: Flow
    named: Mapping[str | None, NamedRows]
    streaming: bool
    declared: bool = False

    @property
    def spark(self) -> SparkSession:
        """Their session."""
        return next(iter(self.named.values())).df.sparkSession

    @property
    def frames(self) -> Mapping[str | None, DataFrame]:
        """The rows of each source."""
        return {name: rows.df for name, rows in self.named.items()}

    @property
    def rows(self) -> Mapping[str | None, SourceRows]:
        """The rows of each source with their watermark; stored panes unchanged."""
        return {name: with_watermark(rows) for name, rows in self.named.items()}

    def bind(self, shards: int) -> BoundFlow:
        """The flow bound to the columns (ColumnError: a column is missing or of the wrong type)."""
        schemas: dict[str | None, pa.Schema] = {name: rows.schema for name, rows in self.named.items()}
        return self.flow.bind(schemas, shards=shards)


def name_inputs(
    flow: Flow, df: DataFrame | None, inputs: Mapping[str, DataFrame], declared: DeclaredInputs | None = None
) -> NamedInputs:
    """Match DataFrames with the sources of a flow, and name their columns.

    Raises:
        PipelineError: the flow is invalid, a source has no DataFrame, a DataFrame no source, or streams and batches are mixed.
        ColumnError: a column is missing or has an unsupported type.
    """
    frames = {
        name: Given.asked(frame) if declared is None else declared.of(name, frame)
        for name, frame in _matched(flow, df, inputs).items()
    }
    streaming = _are_streaming(frames)
    flow = flow.on_sources(lambda source: _stored_panes(source, frames[source.name]))
    _check(flow, streaming=streaming)
    if streaming:
        check_streams(flow)
    named: dict[str | None, NamedRows] = {}
    for source, taker, number in flow.leaves:
        whole_rows = taker.stage.asks_whole_rows(taker.takes, number)
        asked = taker.stage.asks(taker.takes, number)
        rows = _without_dropped(source, frames[source.name])
        named[source.name] = name_columns(source, rows, asked, whole_rows=whole_rows)
    flow = flow.on_sources(lambda source: named[source.name].source)
    flow = flow if streaming else flow.final
    flow.check()  # again, now that expressions have names
    return NamedInputs(flow, named, streaming, declared is not None)


def _check(flow: Flow, *, streaming: bool) -> None:
    if not any(source.gives_panes for source in flow.sources):
        flow.check()
        return
    flow = flow if streaming else flow.final
    try:
        flow.check()
    except PipelineError as error:
        flow.on_sources(lambda source: source.without_retractions()).check()  # whatever else is wrong
        raise PipelineError(
            f"{error}; panes of unknown origin may have retractions: use first.then(second).apply(df), so that their origin is known"
        ) from None


def check_streams(flow: Flow) -> None:
    """Check that every stage emits something on unbounded streams (PipelineError: one never would)."""
    for below in flow.flows:
        below.stage.check_stream(below.takes)


def _matched(flow: Flow, df: DataFrame | None, inputs: Mapping[str, DataFrame]) -> dict[str | None, DataFrame]:
    names = [str(source.name) for source in flow.sources]
    if flow.sources[0].name is None:
        if not isinstance(df, DataFrame) or inputs:
            given = ", ".join(inputs) or _shown(df)
            raise PipelineError(
                f"apply({given}): the pipeline has one input without a name, a DataFrame of Spark: apply(df)"
            )
        return {None: df}
    if df is not None:
        named = ", ".join(f"{name}=..." for name in names)
        raise PipelineError(f"apply(df): the pipeline is a merge; name its inputs: apply({named})")
    for name in names:
        if not isinstance(inputs.get(name), DataFrame):
            raise PipelineError(
                f"apply({name}={_shown(inputs.get(name))}): must be a Spark DataFrame, one for each of {', '.join(names)}"
            )
    for name in inputs:
        if name not in names:
            raise PipelineError(f"apply({name}=...): there is no input {name!r}; the merge has {', '.join(names)}")
    return {name: inputs[name] for name in names}


def _shown(value: object) -> str:
    """An invalid argument for a DataFrame, in a line; with the fix for pandas and polars."""
    kind = type(value)
    if hasattr(value, "columns"):
        return f"{kind.__module__.partition('.')[0]}.{kind.__name__}, which spark.createDataFrame(...) converts to one"
    return printable(value)


def _are_streaming(frames: Mapping[str | None, Given]) -> bool:
    streaming = [str(name) for name, frame in frames.items() if frame.streaming]
    if streaming and len(streaming) < len(frames):
        still = ", ".join(str(name) for name in frames if name not in streaming)
        raise PipelineError(
            f"apply: {', '.join(streaming)} streams, {still} does not; merge streams with streams (readStream) or batches with "
            "batches (read); join a static table before or after"
        )
    return bool(streaming)


def _stored_panes(source: Source, given: Given) -> Source:
    """The source; or the panes of another query if it has no event time and looks like panes.

    Raises:
        PipelineError: it has one, but its rows are panes used as plain rows, or a stream of panes.
    """
    if source.event_time is None or has_no_event_time(source.event_time):
        panes = {"window", "pane", "timestamp"} <= set(given.columns)
        return StoredPanes(keys=source.keys, name=source.name) if panes else source
    if source.form is not None or not _are_panes(given):
        return source
    if given.streaming:
        raise PipelineError(
            f"event_time({source.event_time!r}) on a stream of another pipeline's panes: a query has one watermark, and this "
            "stage's would stay at 1970, so nothing would be emitted; use first.then(second).apply(df), or write the panes to "
            "a table and read it in a query of its own: bm.Pipeline().from_panes().event_time('timestamp', ...). If df reads such a table already, add from_panes(); to use its rows as plain rows: df.drop('pane')"
        )
    if not _stand(given):
        raise not_as_rows(source.event_time)
    return source


def _are_panes(given: Given) -> bool:
    return any(
        field.name == "pane" and isinstance(field.dataType, t.StructType) and is_of_panes(field.dataType.names)
        for field in given.schema
    )


def _stand(given: Given) -> bool:
    """Whether panes are known to be final: none is retracted or replaced, and no row is a dropped one."""
    known = Ledger.read(given.schema["pane"].metadata)
    return (
        known is not None
        and known.follows in (SlotSemantics.ONCE, SlotSemantics.ADDING)
        and "dropped" not in given.columns
    )


def _without_dropped(source: Source, given: Given) -> Given:
    if not source.gives_panes:
        return given
    schema = t.StructType([field for field in given.schema if field.name != "dropped"])
    return attrs.evolve(given, df=given.df.where("pane.kind <> 'DROPPED'").drop("dropped"), schema=schema)


def name_initial(inputs: NamedInputs, initial: Mapping[str | None, Any]) -> dict[str | None, SourceRows]:
    """The initial rows of each table, checked, with the columns of its source.

    Raises:
        PipelineError: not a batch DataFrame.
        ColumnError: columns of the source are missing, or have other types.
    """
    return {name: _like(inputs, name, df) for name, df in initial.items()}


def _like(inputs: NamedInputs, name: str | None, df: Any) -> SourceRows:
    if not isinstance(df, DataFrame) or df.isStreaming:
        raise PipelineError(
            f"apply(initial={df!r}): must be a batch DataFrame with the table's changes (spark.read), not a stream: it is loaded once, before the first batch"
        )
    rows = inputs.named[name]
    named = name_columns(rows.source, Given.asked(df), list(rows.schema.names), whole_rows=False)
    own = set(named.schema.names)
    for field in rows.schema:
        if field.name not in own:
            raise ColumnError(
                f"apply(initial=...): there is no column {field.name!r}; it must have those of the table's changes"
            )
        if named.schema.field(field.name).type != field.type:
            raise ColumnError(
                f"apply(initial=...): {field.name!r} is {named.schema.field(field.name).type}, in the table's changes {field.type}; "
                "cast one of them"
            )
    like = named.df.select(*map(column, rows.df.columns))
    return SourceRows(like, F.unix_micros(column(rows.source.event_time)))


def with_initial(
    frames: Mapping[str | None, DataFrame], initial: Mapping[str | None, SourceRows]
) -> Mapping[str | None, DataFrame]:
    """The rows of a batch, including the initial rows of its tables."""
    return {name: df.unionAll(initial[name].df) if name in initial else df for name, df in frames.items()}
