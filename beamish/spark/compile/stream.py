"""A pipeline as a streaming query.

rows -> withWatermark -> event times as numbers, a shard for each row
     -> packed, a payload a (task, shard)           (row_packer)
     -> heartbeats for every shard, where the pipeline needs the clock
     -> by shard, the operator                      (ShardProcessor)
     -> panes
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from beamish.kernels.reserved import EVENT_TIME, IS_ROW
from beamish.options import Options
from beamish.plan import Plan, make_plan
from beamish.spark.endless import check_ends
from beamish.spark.operator.pane_bytes import from_bytes
from beamish.spark.operator.processor import OUTPUT, ShardProcessor
from beamish.spark.rows.columns import column, name_columns
from beamish.spark.rows.pack import PACKED, row_packer
from beamish.spark.rows.shard_ids import shard_ids
from beamish.spark.rows.types import spark_schema
from beamish.spark.rows.watermark_column import ticks_with_watermark, with_watermark
from beamish.spark.session import check_streaming, warn_of_single_batches
from beamish.spark.shard_count import shard_count
from beamish.spark.sources.heartbeats import heartbeats


def panes_of_stream(options: Options, df: DataFrame, shards: int | None) -> DataFrame:
    """The panes of a streaming DataFrame.

    Args:
        options: the pipeline.
        df: its rows.
        shards: into how many parts the keys are cut; None: a shard a shuffle partition.
    """
    plan, operated = operate_stream(options, df, shards)
    return shown(plan, operated)


def operate_stream(
    options: Options, df: DataFrame, shards: int | None, *, ticks: DataFrame | None = None
) -> tuple[Plan, DataFrame]:
    """The plan, and its panes as bytes (``operate``); ``ticks`` are heartbeats that others share."""
    spark = df.sparkSession
    check_streaming(spark)
    named = name_columns(options, df)
    check_ends(named.options)
    plan = make_plan(named.options, named.schema, shards=shard_count(spark, named.options, shards))
    if plan.needs_clock and ticks is None:
        warn_of_single_batches()
        ticks = ticks_with_watermark(heartbeats(spark), plan.options)
    packed = pack(plan, with_watermark(named.df, plan.options), event_time_us(plan.options), streaming=True)
    return plan, operate(plan, packed, ticks)


def event_time_us(options: Options) -> Column:
    """The rows' event times as numbers."""
    return F.unix_micros(column(options.event_time))


def operate(
    plan: Plan, packed: DataFrame, ticks: DataFrame | None, processor: ShardProcessor | None = None
) -> DataFrame:
    """The panes of packed rows, as bytes (pane_bytes.py): for ``shown``, or for the stage after.

    Args:
        plan: the pipeline's plan.
        packed: what ``pack`` gave; the query's watermark was set before.
        ticks: heartbeats (``clock_us``), one a batch.
        processor: the operator; None: a ShardProcessor.
    """
    if ticks is not None:
        packed = packed.unionByName(for_each_shard(plan, ticks))
    return packed.groupBy("shard").transformWithStateInPandas(
        processor or ShardProcessor(plan), outputStructType=OUTPUT, outputMode="Append", timeMode="EventTime"
    )


def shown(plan: Plan, operated: DataFrame) -> DataFrame:
    """Panes as rows, from bytes."""
    return operated.mapInArrow(from_bytes, spark_schema(plan.pane_schema))


def pack(
    plan: Plan, rows: DataFrame, event_time_us: Column, *, streaming: bool, only: Column | None = None
) -> DataFrame:
    """Rows as payloads for their shards.

    Args:
        plan: the pipeline's plan.
        rows: has the plan's columns.
        event_time_us: their event times, in microseconds.
        streaming: whether the first shard is called on in every batch (``row_packer``).
        only: which rows are rows; the others are there for their watermark. (A filter would not do: Spark moves it
            to before ``withWatermark``.)
    """
    selected = select_packed(plan, rows, event_time_us, only=only)
    return selected.mapInArrow(row_packer(plan, streaming=streaming), spark_schema(PACKED))


def select_packed(
    plan: Plan, rows: DataFrame, event_time_us: Column, *, only: Column | None = None, also: Sequence[Column] = ()
) -> DataFrame:
    """The columns that are packed: the plan's, the event time, which rows are rows; and others.

    The plan's go by number: ``mapInArrow`` does not find columns with a dot in their names.
    """
    return rows.select(
        *(column(name).alias(f"c{i}") for i, name in enumerate(plan.columns)),
        event_time_us.alias(EVENT_TIME),
        *([] if only is None else [only.alias(IS_ROW)]),
        *also,
    )


def for_each_shard(plan: Plan, ticks: DataFrame) -> DataFrame:
    """A heartbeat for every shard."""
    ids = F.array(*map(F.lit, shard_ids(plan.shards)))
    return ticks.select(
        F.explode(ids).alias("shard"),
        "clock_us",
        F.lit(None).cast("binary").alias("payload"),
    )
