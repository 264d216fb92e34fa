"""Chained stages in one query: the panes of a stage are the rows of the next.

A later stage takes a batch's rows at the watermark of the batch before, and passes the batch's own then (RULES.md 30).
So each of its shards must see every batch: one task of the map side calls on all of them (``row_packer``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame

from beamish.engine.chaining import rows_of_panes
from beamish.engine.packing import EVENT_TIME
from beamish.options import Options
from beamish.plan import Plan, make_later_plan, make_plan
from beamish.spark.batch import final, final_panes, panes_of_batch
from beamish.spark.columns import column, name_columns
from beamish.spark.heartbeats import heartbeats
from beamish.spark.shard_count import shard_count
from beamish.spark.stream import operate, pack, panes_of_stream
from beamish.spark.types import spark_schema
from beamish.spark.watermark_column import ticks_with_watermark


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
    ticks = heartbeats(spark) if any(plan.needs_clock for plan in plans) else None
    marked = None if ticks is None else ticks_with_watermark(ticks, plans[0].options)
    return operate_later(plans[1:], panes_of_stream(first, df, shards, ticks=marked), marked)


def operate_later(plans: Sequence[Plan], panes: DataFrame, ticks: DataFrame | None) -> DataFrame:
    """The last stage's panes.

    Args:
        plans: the later stages'.
        panes: of the first stage.
        ticks: the first stage's heartbeats; None: no stage needs the clock.
    """
    for plan in plans:
        packed = pack(plan, _rows(plan, panes), column(EVENT_TIME), streaming=True)
        panes = operate(plan, packed, ticks)
    return panes


def final_panes_of_chain(plans: Sequence[Plan], panes: DataFrame) -> DataFrame:
    """The last stage's final panes; ``panes`` are those of the first, a batch."""
    for plan in plans[1:]:
        payloads = pack(plan, _rows(plan, panes), column(EVENT_TIME), streaming=False)
        panes = payloads.groupBy("shard").applyInArrow(final_panes(plan), spark_schema(plan.pane_schema))
    return panes


def _rows(plan: Plan, panes: DataFrame) -> DataFrame:
    carried = pa.schema([*plan.schema, (EVENT_TIME, pa.int64())])
    return panes.mapInArrow(_taker(plan, carried), spark_schema(carried))


def _taker(plan: Plan, carried: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def take(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            panes = pa.Table.from_batches([batch])
            yield from rows_of_panes(plan, panes).cast(carried).to_batches()

    return take
