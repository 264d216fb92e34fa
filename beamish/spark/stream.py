"""A pipeline as a streaming query.

rows -> withWatermark -> event times as numbers, a shard for each row
     -> packed, a payload a (task, shard)           (row_packer)
     -> heartbeats for every shard, where the pipeline needs the clock
     -> by shard, the operator                      (ShardProcessor)
     -> panes
"""

from __future__ import annotations

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from beamish.engine.packing import EVENT_TIME, SHARD
from beamish.options import Options
from beamish.plan import Plan, make_plan
from beamish.spark.columns import NamedRows, column, name_columns
from beamish.spark.endless import check_ends
from beamish.spark.heartbeats import heartbeats
from beamish.spark.pack_rows import NO_CLOCK, PACKED, row_packer
from beamish.spark.pane_bytes import from_bytes
from beamish.spark.setup_checks import check_streaming, warn_of_single_batches
from beamish.spark.shard_count import shard_count
from beamish.spark.shard_ids import shard_ids
from beamish.spark.shard_processor import OUTPUT, ShardProcessor
from beamish.spark.types import spark_schema
from beamish.spark.watermark_column import ticks_with_watermark, with_watermark


@attrs.frozen
class StreamPlan:
    """A plan and the rows it is for, before the watermark is set."""

    plan: Plan
    rows: NamedRows


def plan_stream(options: Options, df: DataFrame, shards: int | None) -> StreamPlan:
    """Check everything that can be checked before the query starts, and plan it."""
    check_streaming(df.sparkSession)
    rows = name_columns(options, df)
    check_ends(rows.options)
    plan = make_plan(rows.options, rows.schema, shards=shard_count(df.sparkSession, rows.options, shards))
    return StreamPlan(plan, rows)


def panes_of_stream(options: Options, df: DataFrame, shards: int | None) -> DataFrame:
    """The panes of a streaming DataFrame."""
    stream = plan_stream(options, df, shards)
    ticks = None
    if stream.plan.needs_clock:
        warn_of_single_batches()
        ticks = ticks_with_watermark(heartbeats(df.sparkSession), stream.rows.options)
    return operate(stream.plan, with_watermark(stream.rows.df, stream.rows.options), ticks)


def operate(plan: Plan, rows: DataFrame, ticks: DataFrame | None, *, only: Column | None = None) -> DataFrame:
    """The panes of rows that carry the query's watermark.

    Args:
        plan: the pipeline's plan.
        rows: has the plan's columns and the event time.
        ticks: heartbeats (``clock_us``), one a batch.
        only: which rows are rows; the others are there for their watermark.
    """
    packed = pack(plan, rows, only=only, streaming=True)
    if ticks is not None:
        packed = packed.unionByName(_for_each_shard(plan, ticks))
    panes = packed.groupBy("shard").transformWithStateInPandas(
        ShardProcessor(plan), outputStructType=OUTPUT, outputMode="Append", timeMode="EventTime"
    )
    return panes.mapInArrow(from_bytes, spark_schema(plan.pane_schema))


def pack(plan: Plan, rows: DataFrame, *, streaming: bool, only: Column | None = None) -> DataFrame:
    """Rows as payloads for their shards."""
    shard = F.pmod(F.xxhash64(*map(column, plan.options.keys)), F.lit(plan.shards)) if plan.options.keys else F.lit(0)
    shard = shard.cast("int")
    selected = rows.select(
        *map(column, plan.columns),
        F.unix_micros(column(plan.options.event_time)).alias(EVENT_TIME),
        (shard if only is None else F.when(only, shard)).alias(SHARD),
    )
    return selected.mapInArrow(row_packer(plan, streaming=streaming), spark_schema(PACKED))


def _for_each_shard(plan: Plan, ticks: DataFrame) -> DataFrame:
    ids = F.array(*map(F.lit, shard_ids(plan.shards)))
    return ticks.select(
        F.explode(ids).cast("int").alias("shard"),
        F.coalesce("clock_us", F.lit(NO_CLOCK)).cast("long").alias("clock_us"),
        F.lit(None).cast("binary").alias("payload"),
    )
