"""Chained stages in one query: the panes of a stage are the rows of the next.

A later stage takes a batch's rows at the watermark of the batch before, and passes the batch's own then (RULES.md 30).
So each of its shards must see every batch: one task of the map side calls on all of them (``row_packer``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from beamish.engine.windowing.rows_of_panes import rows_of_panes
from beamish.errors import ColumnError, PipelineError
from beamish.kernels.reserved import EVENT_TIME, IS_ROW, REPORT, UPSTREAM_WATERMARK
from beamish.modes import AccumulationMode
from beamish.options import RESERVED_COLUMNS, Options
from beamish.plan import Plan, make_later_plan, make_plan
from beamish.spark.compile.batch import final, final_panes, panes_of_batch
from beamish.spark.compile.stream import operate, operate_stream, shown
from beamish.spark.endless import check_ends
from beamish.spark.operator.pane_bytes import from_bytes
from beamish.spark.operator.told_processor import ToldProcessor
from beamish.spark.rows.columns import name_columns
from beamish.spark.rows.pack import PACKED, row_packer
from beamish.spark.rows.types import arrow_type, spark_schema
from beamish.spark.rows.watermark_column import ticks_with_watermark
from beamish.spark.rows.watermark_reports import MARKED, mark_packer, with_heartbeats
from beamish.spark.session import check_packages, check_streaming, warn_of_single_batches
from beamish.spark.shard_count import shard_count
from beamish.spark.sources.heartbeats import heartbeats
from beamish.windows.global_window import GlobalWindow
from beamish.windows.option import WindowOption


def panes_of_chain(stages: Sequence[Options], df: DataFrame, shards: int | None) -> DataFrame:
    """The last stage's panes of a streaming or batch DataFrame."""
    spark = df.sparkSession
    first, *rest = stages
    if not df.isStreaming:
        first, *rest = (final(options) for options in stages)
        rest = [attrs.evolve(options, watermark=None) for options in rest]
    named = name_columns(first, df)
    plans = [make_plan(named.options, named.schema, shards=shard_count(spark, named.options, shards))]
    for options in rest:
        plans.append(make_later_plan(options, plans[-1], shards=shard_count(spark, options, shards)))
    if not df.isStreaming:
        return final_panes_of_chain(plans, panes_of_batch(first, df, shards))
    ticks = _heartbeats(spark, plans)
    marked = None if ticks is None else ticks_with_watermark(ticks, plans[0].options)
    _, operated = operate_stream(first, df, shards, ticks=marked)
    return operate_later(plans[1:], operated, marked)


def are_panes(df: DataFrame) -> bool:
    """Whether a DataFrame is what a pipeline gave, by its columns."""
    return {"window", "pane", "timestamp"} <= set(df.columns)


def panes_of_panes(options: Options, df: DataFrame, shards: int | None) -> DataFrame:
    """The panes of a stage that is applied to the panes of another, of which no more is known than its columns.

    So they may hold retractions, and the watermark is the query's.

    Raises:
        PipelineError, ColumnError, OptionError, SparkSetupError: the stage, the columns, the shard count or the session
            is wrong, or it cannot do without knowing the stage before.
    """
    spark = df.sparkSession
    if options.window is not None and options.window.merging:
        raise PipelineError(
            f"window({options.window!r}) applied to a DataFrame of panes: it may hold retractions, and taking a row back may "
            "split a merged window; where the stage before does not retract, say first.then(second).apply(df)"
        )
    if options.mode is AccumulationMode.DISCARDING and df.isStreaming:
        raise PipelineError(
            "discarding applied to a DataFrame of panes: it may hold retractions, and what they remove is of an earlier "
            "pane; where the stage before does not retract, say first.then(second).apply(df)"
        )
    if df.isStreaming:
        check_streaming(spark)
    else:
        check_packages()
        options = final(options)
    panes = df.where("pane.kind <> 'DROPPED'")
    before = _stage_before(panes)
    plan = make_later_plan(attrs.evolve(options, watermark=None), before, shards=shard_count(spark, options, shards))
    if not df.isStreaming:
        return final_panes_of_chain([before, plan], panes)
    return operate_later([plan], panes, _heartbeats(spark, [plan]), read=iter)


def _stage_before(panes: DataFrame) -> Plan:
    """What is known of the stage that gave panes: their columns; all but the pane's own go by as keys."""
    fields = []
    for field in panes.schema:
        if field.name not in (*RESERVED_COLUMNS, "dropped"):
            type_ = arrow_type(field.dataType)
            if type_ is None:
                raise ColumnError(
                    f"column {field.name!r}: Spark cannot hand a {field.dataType.simpleString()} to Python; cast or drop it"
                )
            fields.append((field.name, type_))
    options = Options(
        keys=tuple(name for name, _ in fields),
        window=_WindowsOfPanes(),
        mode=AccumulationMode.ACCUMULATING_AND_RETRACTING,
    )
    return Plan(options, pa.schema(fields), 1, ())


@attrs.frozen
class _WindowsOfPanes(WindowOption):
    """Windows that are known from the panes alone."""


def _heartbeats(spark: SparkSession, plans: Sequence[Plan]) -> DataFrame | None:
    """The clock, for all stages, if one needs it."""
    if not any(plan.needs_clock for plan in plans):
        return None
    warn_of_single_batches()
    return heartbeats(spark)


Batches = Iterable[pa.RecordBatch]
Reader = Callable[[Batches], Iterator[pa.RecordBatch]]


def operate_later(
    plans: Sequence[Plan],
    panes: DataFrame,
    ticks: DataFrame | None,
    *,
    told: bool = False,
    read: Reader = from_bytes,
) -> DataFrame:
    """The last stage's panes.

    Args:
        plans: the later stages'.
        panes: of the first stage, as bytes (``operate``).
        ticks: the first stage's heartbeats; None: no stage needs the clock.
        told: whether the watermark comes with the panes, since it is not the query's.
        read: how panes are read, if they are no bytes.
    """
    for plan in plans:
        check_ends(attrs.evolve(plan.options, window=GlobalWindow()) if plan.is_global else plan.options)
        if told:
            assert ticks is not None  # noqa: S101 - a watermark that is not the query's follows the clock
            marked = panes.mapInArrow(pane_packer(plan, mark_packer(plan, 0), read, told=True), spark_schema(MARKED))
            processor = ToldProcessor(plan, tells=plan is not plans[-1])
            panes = operate(plan, with_heartbeats(plan, marked, ticks), None, processor)
        else:
            packer = pane_packer(plan, row_packer(plan, streaming=True), read)
            panes = operate(plan, panes.mapInArrow(packer, spark_schema(PACKED)), ticks)
        read = from_bytes
    return shown(plans[-1], panes)


def final_panes_of_chain(plans: Sequence[Plan], panes: DataFrame) -> DataFrame:
    """The last stage's final panes; ``panes`` are those of the first, a batch."""
    for plan in plans[1:]:
        packer = pane_packer(plan, row_packer(plan, streaming=False), iter)
        payloads = panes.mapInArrow(packer, spark_schema(PACKED))
        panes = payloads.groupBy("shard").applyInArrow(final_panes(plan), spark_schema(plan.pane_schema))
    return panes


def pane_packer(plan: Plan, pack: Reader, read: Reader, *, told: bool = False) -> Reader:
    """A function for ``mapInArrow``: panes of the stage before to payloads, in one step.

    Args:
        plan: the later stage's.
        pack: packs its rows.
        read: reads the panes.
        told: whether the watermark comes with them: it goes on as a mark.
    """
    carried = pa.schema([*plan.schema, (EVENT_TIME, pa.int64())])

    def rows(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in read(batches):
            panes = pa.Table.from_batches([batch])
            if not told:
                yield from rows_of_panes(plan, panes).cast(carried).to_batches()
                continue
            is_pane = panes[UPSTREAM_WATERMARK].is_null()
            taken = rows_of_panes(plan, panes.filter(is_pane)).cast(carried)
            marks = panes[UPSTREAM_WATERMARK].drop_null()
            yield from _marked(taken, pa.nulls(taken.num_rows, pa.int64()), is_row=True)
            yield from _marked(_nulls(carried, len(marks)), marks, is_row=False)

    return lambda batches: pack(rows(batches))


def _marked(rows: pa.Table, mark: Any, *, is_row: bool) -> list[pa.RecordBatch]:
    which = pa.array([is_row] * rows.num_rows, pa.bool_())
    return rows.append_column(IS_ROW, which).append_column(REPORT, mark).to_batches()  # type: ignore[no-any-return]


def _nulls(schema: pa.Schema, rows: int) -> pa.Table:
    return pa.table([pa.nulls(rows, field.type) for field in schema], schema=schema)
