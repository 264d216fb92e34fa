"""Test scripts as real micro-batches: every event of the script is one batch, and a streaming source gives its rows.

Spark's watermark moves only between batches: a batch runs at the greatest value carried by earlier batches. So the batch of an
event also carries the watermark of the *next* event, whose batch then runs at exactly this watermark. A script that begins with a
watermark gets an extra first batch, without rows and clock, which is not a step of any shard.

The clock is sent as heartbeats with every other batch, if the pipeline needs it. Nothing sleeps. Spark's no-data batches are
disabled: when a query stops, one would move the watermark in a step before that of the event.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from beamish.contract.relation import Relation
from beamish.errors import OptionError, ScriptError, SparkSetupError
from beamish.flow import Flow
from beamish.fusion.groups import FUSE, Fuse
from beamish.kernels.buffers import cast_table, from_bytes, to_bytes
from beamish.kernels.column_names import BATCH, EVENT_TIME, IS_ROW, REPORT, WATERMARK
from beamish.pane import PaneList
from beamish.script import (
    Event,
    Trace,
    check_script,
    clock_of,
    in_words,
    moved_to,
    panes_from_table,
    script_rows,
    steps_of,
)
from beamish.source import Source
from beamish.spark.checkpoint.inspected import has_done_a_batch
from beamish.spark.checkpoint.stored_query import read_query
from beamish.spark.compile.inputs import check_streams
from beamish.spark.compile.stream import needs_ticks, panes_of_stream
from beamish.spark.operator.heartbeats import SupportsTriggerAvailableNow
from beamish.spark.rows.pack import NO_CLOCK
from beamish.spark.rows.schemas import spark_schema
from beamish.spark.rows.watermark_column import SourceRows
from beamish.spark.runtime.millis import is_watermark, watermark_row_us
from beamish.spark.runtime.session import check_streaming, shard_count, spark_version
from beamish.spark.runtime.workers import Acknowledged


class ScriptSource(DataSource):
    """Spark's name for it is ``beamish_script``. Options: ``rows``, a table with a column ``BATCH``; ``batches``."""

    @classmethod
    def name(cls) -> str:
        return "beamish_script"

    def schema(self) -> t.StructType:
        return spark_schema(self._rows().schema)

    def streamReader(self, schema: t.StructType) -> DataSourceStreamReader:  # noqa: N802
        return ScriptReader(self._rows(), int(self.options["batches"]))

    def _rows(self) -> pa.Table:
        return from_bytes(base64.b64decode(self.options["rows"]))


class ScriptReader(Acknowledged, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are ``{"batch": number of batches served}``."""

    def __init__(self, rows: pa.Table, batches: int) -> None:
        self._rows = rows
        self._batches = batches

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"batch": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        pass

    def latestOffset(self, start: Any, limit: Any) -> dict[str, int]:  # noqa: N802
        return {"batch": max(start["batch"], min(start["batch"] + 1, self._batches))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition((start["batch"], end["batch"]))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        first, end = partition.value
        at = self._rows[BATCH]
        chosen = self._rows.filter(pc.and_(pc.greater_equal(at, first), pc.less(at, end)))
        yield from chosen.to_batches()


def script_stream(spark: SparkSession, rows: pa.Table, batches: int) -> DataFrame:
    """A streaming DataFrame that serves ``rows`` by their ``BATCH``, up to number ``batches``."""
    spark.dataSource.register(ScriptSource)
    text = base64.b64encode(to_bytes(rows)).decode()
    return spark.readStream.format(ScriptSource.name()).option("rows", text).option("batches", str(batches)).load()


def trace_on_spark(
    spark: SparkSession,
    flow: Flow,
    events: Sequence[Event],
    *,
    shards: int | None = None,
    partitions: int = 2,
    restart_after: Sequence[int] = (),
    heartbeats: bool | None = None,
    checkpoint: str | Path | None = None,
    initial: Any = None,
    fuse: Fuse | None = None,
) -> Trace:
    """Run a script as micro-batches; yields each event with its output.

    Args:
        spark: the session, classic or Connect.
        flow: the flow to run.
        events: the script.
        shards: number of shards of each stage; None: one per partition.
        partitions: ``spark.sql.shuffle.partitions`` of the query.
        restart_after: numbers of events, from 0, after which the query is stopped and restarted from its checkpoint.
        heartbeats: whether every shard is called in every batch; None: if the flow needs the clock.
        checkpoint: a folder for the run; an existing run continues after its last event (the script must then not begin with a
            watermark). None: a temporary one.
        initial: initial rows of versioned tables, as for ``Flow.initial``.
        fuse: which stages run together; None: as in the checkpoint of an existing run, else all that may.

    Raises:
        ScriptError: a watermark that Spark cannot represent.
        PipelineError, ColumnError, SparkSetupError: as for ``run`` and ``apply``.
    """
    flow.check()
    check_script(flow, events)
    _check(events, restart_after)
    _check_session(spark)
    check_streams(flow)
    rows = script_rows(flow, events, initial)
    if not rows.any:
        return Trace((event, PaneList()) for event in events)
    confs = {"spark.sql.shuffle.partitions": str(partitions), "spark.sql.streaming.noDataMicroBatches.enabled": "false"}
    with _configured(spark, confs), _folder(checkpoint) as folder:
        if fuse is None:
            kept = str(folder / "checkpoint")
            fuse = read_query(spark, kept, flow).fuse if has_done_a_batch(spark, kept) else FUSE
        bound = fuse.grouped(flow.bind(rows.schemas, shards=shard_count(spark, shards)))
        if heartbeats is False and needs_ticks(bound):
            raise OptionError("heartbeats=False: this pipeline needs the clock; leave it out")
        ticking = needs_ticks(bound) if heartbeats is None else heartbeats
        batches = {
            source.name: cut(source, events, rows.tables[source.name], rows.schemas[source.name])
            for source in flow.sources
        }
        begins = {
            name: SourceRows(spark.createDataFrame(table, spark_schema(table.schema)), F.col(EVENT_TIME))
            for name, table in rows.initial.items()
        }
        for stop in _stops(events, restart_after):
            sources = {source.name: _stream(spark, source, batches[source.name], stop) for source in flow.sources}
            ticks = script_stream(spark, clock_rows(events), stop) if ticking else None
            _run_query(panes_of_stream(bound, sources, ticks, initial=begins), folder)
        return _by_event(folder, bound.operator.gives, events)


def _check(events: Sequence[Event], restart_after: Sequence[int]) -> None:
    for event in events:
        moved = [step.watermark_us for step in steps_of(event) if step.watermark_us is not None]
        if not all(map(is_watermark, moved)):
            raise ScriptError(
                f"{in_words(event)}: on Spark a watermark is a whole number of milliseconds above 0; "
                "round it, and shift a script that begins before 1970"
            )
    for at in restart_after:
        if not 0 <= at < len(events):
            raise OptionError(f"restart_after={tuple(restart_after)!r}: numbers of events, 0 to {len(events) - 1}")


def _check_session(spark: SparkSession) -> None:
    check_streaming(spark)
    if spark_version(spark) < (4, 2):
        raise SparkSetupError(
            "TestStream.on_spark needs Spark 4.2: earlier versions cannot serve a source batch by batch"
        )


def _stops(events: Sequence[Event], restart_after: Sequence[int]) -> list[int]:
    """The batches before which the query stops; the last one follows the script."""
    first = first_batch(events)
    return sorted({first + at + 1 for at in restart_after} | {first + len(events)})


def first_batch(events: Sequence[Event]) -> int:
    """The batch of the first event."""
    return int(any(step.watermark_us is not None for step in steps_of(events[0])))


def cut(source: Source, events: Sequence[Event], tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """The rows of a source by batch, so that each event's batch runs at the event's watermark.

    Args:
        source: the source.
        events: the script.
        tables: its rows, by step.
        schema: its columns, also without rows.

    Returns:
        the rows' columns, ``EVENT_TIME``, ``BATCH``, ``REPORT`` (the watermark of the row) and ``IS_ROW``.
    """
    schema = schema.append(pa.field(EVENT_TIME, pa.int64()))
    first, bundles = first_batch(events), iter(tables)
    parts = [_rows(schema.empty_table(), 0)]
    for batch, event in enumerate(events, first):
        watermark_us = moved_to(source, event)
        if watermark_us is not None:
            parts.append(_watermark_row(watermark_us, batch - 1, schema))
        if any(step.rows and step.input == source.name for step in steps_of(event)):
            parts.append(_rows(next(bundles), batch))
    return pa.concat_tables(parts)


def clock_rows(events: Sequence[Event]) -> pa.Table:
    """The heartbeats: ``clock_us`` by ``BATCH``. Before the script's first clock step they only call the shards."""
    clock_us, rows = NO_CLOCK, []
    for batch, moved_us in enumerate(map(clock_of, events), first_batch(events)):
        clock_us = clock_us if moved_us is None else moved_us
        rows.append({"clock_us": clock_us, BATCH: batch})
    return pa.Table.from_pylist(rows, pa.schema([("clock_us", pa.int64()), (BATCH, pa.int64())]))


def _rows(table: pa.Table, batch: int) -> pa.Table:
    n = table.num_rows
    return (
        table.append_column(REPORT, pa.nulls(n, pa.int64()))
        .append_column(IS_ROW, pa.array([True] * n, pa.bool_()))
        .append_column(BATCH, pa.array([batch] * n, pa.int64()))
    )


def _watermark_row(us: int, batch: int, schema: pa.Schema) -> pa.Table:
    columns: list[Any] = [pa.nulls(1, field.type) for field in schema]
    columns += [pa.array([watermark_row_us(us)]), pa.array([False]), pa.array([batch], pa.int64())]
    return pa.table(columns, names=[*schema.names, REPORT, IS_ROW, BATCH])


def _stream(spark: SparkSession, source: Source, rows: pa.Table, stop: int) -> SourceRows:
    df = script_stream(spark, rows, stop)
    if source.watermark is not None and source.watermark.moved_by_rows and source.is_waited_for:
        df = df.withColumn(WATERMARK, F.timestamp_micros(REPORT)).withWatermark(WATERMARK, "0 seconds")
    return SourceRows(df, F.col(EVENT_TIME), F.col(REPORT), F.col(IS_ROW))


def _run_query(panes: DataFrame, folder: Path) -> None:
    """Run until every batch is done; each batch's panes are written to a file, overwritten on replay."""
    out = str(folder / "panes")
    Path(out).mkdir(exist_ok=True)

    def write(batch: DataFrame, number: int) -> None:
        Path(f"{out}/{number:08}.arrow").write_bytes(to_bytes(batch.toArrow()))

    query = panes.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def _by_event(folder: Path, gives: Relation, events: Sequence[Event]) -> Trace:
    """Each event with the panes of its batch."""
    panes = [PaneList() for _ in events]
    for path in sorted((folder / "panes").iterdir()):
        offsets = (folder / "checkpoint" / "offsets" / str(int(path.stem))).read_text("utf-8")
        batches = max(json.loads(line)["batch"] for line in offsets.splitlines() if line.startswith('{"batch"'))
        at = batches - 1 - first_batch(events)
        table = cast_table(from_bytes(path.read_bytes()), gives.schema)
        panes[max(at, 0)] += panes_from_table(table, gives)
    return Trace(zip(events, panes, strict=True))


@contextmanager
def _folder(kept: str | Path | None) -> Iterator[Path]:
    if kept is not None:
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory(prefix="beamish-script-") as folder:
        yield Path(folder)


@contextmanager
def _configured(spark: SparkSession, confs: Mapping[str, str]) -> Iterator[None]:
    before = {name: str(spark.conf.get(name)) for name in confs}
    try:
        for name, value in confs.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
