"""Chained stages in one query: the panes of a stage are the rows of the next.

A later stage takes a batch's rows at the watermark of the batch before, and passes the batch's own then (RULES.md 30).
So each of its shards must see every batch: one task of the map side calls on all of them (``row_packer``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from beamish.engine.chaining import rows_of_panes
from beamish.engine.packing import EVENT_TIME
from beamish.errors import ColumnError, PipelineError
from beamish.modes import AccumulationMode
from beamish.options import RESERVED_COLUMNS, Options
from beamish.plan import Plan, make_later_plan, make_plan
from beamish.spark.batch import final, final_panes, panes_of_batch
from beamish.spark.columns import column, name_columns
from beamish.spark.endless import check_ends
from beamish.spark.heartbeats import heartbeats
from beamish.spark.marks import MARK, MARKED, mark_packer, with_heartbeats
from beamish.spark.setup_checks import check_packages, check_streaming, warn_of_single_batches
from beamish.spark.shard_count import shard_count
from beamish.spark.shard_processor import TOLD
from beamish.spark.stream import operate, pack, panes_of_stream, select_packed
from beamish.spark.told_processor import ToldProcessor
from beamish.spark.types import arrow_type, spark_schema
from beamish.spark.watermark_column import ticks_with_watermark
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
    return operate_later(plans[1:], panes_of_stream(first, df, shards, ticks=marked), marked)


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
    return operate_later([plan], panes, _heartbeats(spark, [plan]))


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


def operate_later(plans: Sequence[Plan], panes: DataFrame, ticks: DataFrame | None, *, told: bool = False) -> DataFrame:
    """The last stage's panes.

    Args:
        plans: the later stages'.
        panes: of the first stage.
        ticks: the first stage's heartbeats; None: no stage needs the clock.
        told: whether the watermark comes with the panes, since it is not the query's.
    """
    for plan in plans:
        check_ends(attrs.evolve(plan.options, window=GlobalWindow()) if plan.is_global else plan.options)
        if told:
            assert ticks is not None  # noqa: S101 - a watermark that is not the query's follows the clock
            is_row, also = column(MARK).isNull(), (column(MARK),)
            selected = select_packed(plan, _rows(plan, panes, told=True), column(EVENT_TIME), only=is_row, also=also)
            marked = with_heartbeats(plan, selected.mapInArrow(mark_packer(plan, 0), spark_schema(MARKED)), ticks)
            panes = operate(plan, marked, None, ToldProcessor(plan, tells=plan is not plans[-1]))
            continue
        packed = pack(plan, _rows(plan, panes), column(EVENT_TIME), streaming=True)
        panes = operate(plan, packed, ticks)
    return panes


def final_panes_of_chain(plans: Sequence[Plan], panes: DataFrame) -> DataFrame:
    """The last stage's final panes; ``panes`` are those of the first, a batch."""
    for plan in plans[1:]:
        payloads = pack(plan, _rows(plan, panes), column(EVENT_TIME), streaming=False)
        panes = payloads.groupBy("shard").applyInArrow(final_panes(plan), spark_schema(plan.pane_schema))
    return panes


def _rows(plan: Plan, panes: DataFrame, *, told: bool = False) -> DataFrame:
    carried = pa.schema([*plan.schema, (EVENT_TIME, pa.int64()), *([(MARK, pa.int64())] if told else [])])
    return panes.mapInArrow(_taker(plan, carried), spark_schema(carried))


def _taker(plan: Plan, carried: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def take(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            panes = pa.Table.from_batches([batch])
            if MARK in carried.names:
                marks = pa.table({MARK: panes[TOLD].drop_null()})
                yield from pa.concat_tables([carried.empty_table(), marks], promote_options="default").to_batches()
                panes = panes.filter(panes[TOLD].is_null())
            rows = rows_of_panes(plan, panes)
            if MARK in carried.names:
                rows = rows.append_column(MARK, pa.nulls(rows.num_rows, pa.int64()))
            yield from rows.cast(carried).to_batches()

    return take
