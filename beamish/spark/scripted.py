"""Test scripts as real micro-batches: every event of the script is one batch.

Spark's watermark moves only between batches: a batch runs at the greatest value that the batches before it carried.
So the batch of an event carries, beside the event, the watermark of the event *after* it, and that event's batch
then runs at exactly this watermark. A script that begins with a watermark gets one batch more in front, without
rows and without a clock, which is no step for any shard.

The clock comes as heartbeats with every batch but that one, where the pipeline needs it. Nothing sleeps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.errors import OptionError, ScriptError, SparkSetupError
from beamish.kernels.reserved import BATCH, EVENT_TIME, IS_ROW, PREFIX, REPORT, WATERMARK
from beamish.options import Options
from beamish.pane import Pane
from beamish.plan import Plan, make_later_plan, make_plan
from beamish.script.events import Bundle, ClockTo, Event, WatermarkTo
from beamish.script.panes import panes_from_table
from beamish.script.tables import bundle_tables, check_script
from beamish.spark.compile.inputs import operate_merge
from beamish.spark.compile.stages import operate_later
from beamish.spark.compile.stream import operate, pack, shown
from beamish.spark.endless import check_ends
from beamish.spark.millis import is_watermark, watermark_row_us
from beamish.spark.operator.watermark_sources import follows_inputs
from beamish.spark.rows.pack import NO_CLOCK
from beamish.spark.session import check_streaming, spark_version
from beamish.spark.shard_count import shard_count
from beamish.spark.sources.script import script_rows
from beamish.watermarks import ProcessingTimeLag

_WATERMARK_US = PREFIX + "watermark_us"


@attrs.frozen
class Batches:
    """A script cut into micro-batches.

    Attributes:
        rows: the rows' columns, ``EVENT_TIME``, ``BATCH``, ``_WATERMARK_US`` and ``IS_ROW``.
        ticks: ``clock_us`` and ``BATCH``.
        of_event: the batch of each event.
    """

    rows: pa.Table
    ticks: pa.Table
    of_event: tuple[int, ...]

    @property
    def count(self) -> int:
        return self.of_event[-1] + 1


def run_on_spark(
    spark: SparkSession,
    options: Options,
    events: Sequence[Event],
    *,
    shards: int | None = None,
    partitions: int = 2,
    restart_after: Sequence[int] = (),
    heartbeats: bool | None = None,
    later: Sequence[Options] = (),
) -> list[Pane]:
    """Run a script as micro-batches.

    Args:
        spark: the session, classic or Connect.
        options: the pipeline.
        events: the script.
        shards: into how many parts the keys are cut; None: one a partition.
        partitions: ``spark.sql.shuffle.partitions`` of the query.
        restart_after: numbers of events, from 0, after which the query is stopped and started again from its checkpoint.
        heartbeats: whether every shard is called on in every batch; None: where the pipeline needs the clock.
        later: the later stages of a chain.

    Returns:
        the list that ``run`` gives, key by key.

    Raises:
        ScriptError: a watermark that Spark cannot have.
        PipelineError, ColumnError, SparkSetupError: as ``run`` and ``apply``.
    """
    options.check()
    check_script(options, events)
    _check(events, [options, *later], restart_after, heartbeats)
    check_streaming(spark)
    if spark_version() < (4, 2):
        raise SparkSetupError("TestStream.on_spark needs Spark 4.2: before it a source cannot hand out batch by batch")
    check_ends(options)
    tables = bundle_tables(options, events)
    if not any(table.num_rows for table in tables):
        return []
    with _partitions(spark, partitions), tempfile.TemporaryDirectory(prefix="beamish-script-") as folder:
        plan = make_plan(
            options, tables[0].drop_columns([EVENT_TIME]).schema, shards=shard_count(spark, options, shards)
        )
        plans = [plan]
        for stage in later:
            plans.append(make_later_plan(stage, plans[-1], shards=shard_count(spark, stage, shards)))
        needs_clock = any(one.needs_clock for one in plans)
        ticks = needs_clock if heartbeats is None else heartbeats
        parts = [cut(events, tables, ticks=ticks, of=one.name) for one in options.inputs]
        parts = parts or [cut(events, tables, ticks=ticks)]
        stops = sorted({parts[0].of_event[at] + 1 for at in restart_after} | {parts[0].count})
        for stop in stops:
            beats = _ticks(spark, parts[0], stop)
            if options.inputs:
                panes = _merged_panes(spark, plan, parts, stop, beats, tells=bool(later))
            else:
                panes = _panes(spark, plan, parts[0], stop, beats)
            told = follows_inputs(plan)
            panes = operate_later(plans[1:], panes, beats, told=told) if later else shown(plan, panes)
            _run_query(panes, Path(folder))
        return panes_from_table(_read(Path(folder), plans[-1]), plans[-1])


def _check(
    events: Sequence[Event], stages: Sequence[Options], restart_after: Sequence[int], heartbeats: bool | None
) -> None:
    for event in events:
        if not isinstance(event, WatermarkTo):
            continue
        if not is_watermark(event.us):
            raise ScriptError(
                f"advance_watermark_to({event.us / 1e6}): on Spark a watermark is a whole number of milliseconds above 0; "
                "round it, and shift a script that begins before 1970"
            )
    for at in restart_after:
        if not 0 <= at < len(events):
            raise OptionError(f"restart_after={tuple(restart_after)!r}: numbers of events, 0 to {len(events) - 1}")
    if heartbeats is False and any(options.needs_clock for options in stages):
        raise OptionError("heartbeats=False: this pipeline needs the clock; leave it out")


def cut(events: Sequence[Event], tables: Sequence[pa.Table], *, ticks: bool, of: str | None = None) -> Batches:
    """Cut a script into batches, so that each event's batch runs at the event's watermark.

    Args:
        events: the script.
        tables: its bundles.
        ticks: whether the clock comes with them.
        of: the input of a merge whose rows and watermarks are wanted.
    """
    first = 1 if isinstance(events[0], WatermarkTo) else 0
    bundles = iter(tables)
    arrived = [(event, at, next(bundles)) for at, event in enumerate(events) if isinstance(event, Bundle)]
    parts = [_rows(tables[0].slice(0, 0), 0)]
    parts += [_rows(table, first + at) for event, at, table in arrived if event.input == of]
    parts += [
        _watermark_row(event.us, first + at - 1, tables[0].schema)
        for at, event in enumerate(events)
        if isinstance(event, WatermarkTo) and event.input in (None, of)
    ]
    clock, clocks = NO_CLOCK, []  # before the script's first step of the clock a heartbeat only calls on the shards
    for event in events:
        clock = event.us if isinstance(event, ClockTo) else clock
        clocks.append(clock)
    of_event = tuple(range(first, first + len(events)))
    beats = {"clock_us": pa.array(clocks, pa.int64()), BATCH: pa.array(of_event, pa.int64())}
    return Batches(pa.concat_tables(parts), pa.table(beats).slice(0, None if ticks else 0), of_event)


def _rows(table: pa.Table, batch: int) -> pa.Table:
    n = table.num_rows
    return (
        table.append_column(_WATERMARK_US, pa.nulls(n, pa.int64()))
        .append_column(IS_ROW, pa.array([True] * n, pa.bool_()))
        .append_column(BATCH, pa.array([batch] * n, pa.int64()))
    )


def _watermark_row(us: int, batch: int, schema: pa.Schema) -> pa.Table:
    columns: list[Any] = [pa.nulls(1, field.type) for field in schema]
    columns += [pa.array([watermark_row_us(us)]), pa.array([False]), pa.array([batch], pa.int64())]
    return pa.table(columns, names=[*schema.names, _WATERMARK_US, IS_ROW, BATCH])


def _panes(spark: SparkSession, plan: Plan, batches: Batches, stop: int, ticks: DataFrame | None) -> DataFrame:
    packed = pack(plan, _stream(spark, batches, stop), F.col(EVENT_TIME), streaming=True, only=F.col(IS_ROW))
    return operate(plan, packed, ticks)


def _merged_panes(
    spark: SparkSession, plan: Plan, parts: Sequence[Batches], stop: int, ticks: DataFrame | None, *, tells: bool
) -> DataFrame:
    rows = [
        _stream(spark, batches, stop, marked=not isinstance(one.watermark, ProcessingTimeLag)).withColumn(
            REPORT, F.col(_WATERMARK_US)
        )
        for one, batches in zip(plan.options.inputs, parts, strict=True)
    ]
    return operate_merge(plan, rows, ticks, F.col(IS_ROW), tells=tells)


def _stream(spark: SparkSession, batches: Batches, stop: int, *, marked: bool = True) -> DataFrame:
    rows = script_rows(spark, batches.rows, stop).withColumn(WATERMARK, F.timestamp_micros(_WATERMARK_US))
    return rows.withWatermark(WATERMARK, "0 seconds") if marked else rows


def _ticks(spark: SparkSession, batches: Batches, stop: int) -> DataFrame | None:
    return script_rows(spark, batches.ticks, stop) if batches.ticks.num_rows else None


def _run_query(panes: DataFrame, folder: Path) -> None:
    """Run until every batch is done; each batch's panes are written to a file, anew if it is run again."""
    out = str(folder / "panes")
    Path(out).mkdir(exist_ok=True)

    def write(batch: DataFrame, number: int) -> None:
        table = batch.toArrow()
        with pa.OSFile(f"{out}/{number:08}.arrow", "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)

    query = panes.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def _read(folder: Path, plan: Plan) -> pa.Table:
    tables = [plan.pane_schema.empty_table()]
    for path in sorted((folder / "panes").iterdir()):
        with pa.ipc.open_stream(path.read_bytes()) as reader:
            tables.append(reader.read_all().cast(plan.pane_schema))
    return pa.concat_tables(tables)


@contextmanager
def _partitions(spark: SparkSession, partitions: int) -> Iterator[None]:
    name = "spark.sql.shuffle.partitions"
    before = str(spark.conf.get(name))
    spark.conf.set(name, partitions)
    try:
        yield
    finally:
        spark.conf.set(name, before)
