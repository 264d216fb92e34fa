"""A pipeline on a batch DataFrame: the final panes (RULES.md 25).

By Spark's own aggregation where it means the same (native_batch.py), else by one pass of the engine a shard: all rows
at once under ``Default()``, then the end of time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from beamish.durations import Duration
from beamish.engine.state import DictStore
from beamish.engine.windowing.several import open_shard
from beamish.modes import ClosingBehavior, OnTimeBehavior
from beamish.options import Options
from beamish.plan import Plan, make_plan
from beamish.spark.compile.native import native_panes, why_not_native
from beamish.spark.compile.stream import event_time_us, pack
from beamish.spark.rows.columns import column, name_columns
from beamish.spark.rows.types import spark_schema
from beamish.spark.session import check_packages
from beamish.spark.shard_count import shard_count
from beamish.triggers.default import Default
from beamish.watermarks import BoundedOutOfOrderness
from beamish.windows.option import END_OF_TIME_US
from beamish.windows.windowings import WINDOWING


def panes_of_batch(options: Options, df: DataFrame, shards: int | None) -> DataFrame:
    """The final panes of a batch DataFrame."""
    check_packages()
    rows = name_columns(options, df)
    plan = make_plan(final(rows.options), rows.schema, shards=shard_count(df.sparkSession, rows.options, shards))
    if not plan.windowings:
        return _panes(plan, rows.df)
    parts = [
        _panes(of, rows.df).withColumn(WINDOWING, F.lit(name)).select(*map(column, plan.pane_schema.names))
        for name, of in plan.windowings.items()
    ]
    return reduce(DataFrame.unionAll, parts)


def _panes(plan: Plan, rows: DataFrame) -> DataFrame:
    return engine_panes(plan, rows) if why_not_native(plan) else native_panes(plan, rows)


def engine_panes(plan: Plan, rows: DataFrame) -> DataFrame:
    """The final panes by one pass of the engine a shard."""
    payloads = pack(plan, rows, event_time_us(plan.options), streaming=False)
    return payloads.groupBy("shard").applyInArrow(final_panes(plan), spark_schema(plan.pane_schema))


def final(options: Options) -> Options:
    """The options of which a batch has need: triggers, lateness, modes and behaviors are not asked."""
    return attrs.evolve(
        options,
        watermark=BoundedOutOfOrderness(0),
        trigger=Default(),
        allowed_lateness=Duration(0),
        mode=None,
        on_time=OnTimeBehavior.FIRE_ALWAYS,
        closing=ClosingBehavior.FIRE_IF_NON_EMPTY,
        retract_merged=None,
        only_updated=False,
    )


def final_panes(plan: Plan) -> Callable[[pa.Table], pa.Table]:
    """A function for ``applyInArrow``: the payloads of a shard to its panes."""

    def panes(packed: pa.Table) -> pa.Table:
        shard, payloads = open_shard(plan, DictStore()), packed["payload"].to_pylist()
        dropped = shard.step(None, None, payloads)
        return pa.concat_tables([dropped, shard.step(END_OF_TIME_US, None, [])])

    return panes
