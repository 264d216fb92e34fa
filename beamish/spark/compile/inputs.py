"""A merge on Spark: each input's rows get the columns of all, then its payloads go to the same shards.

The watermark. As a rule it is Spark's: each input has a ``withWatermark`` of its own, and the query's is the least of
them (SPARK.md S7). Where an input has an ``idle_timeout`` or a ``ProcessingTimeLag``, one number for the query is not
enough: then each task tells every shard how far its rows take their input's watermark, as *marks*, and the shard
follows each input by itself, at the marks of the batches before (``MergeProcessor``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

import attrs
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.accumulations.adapters.one_input import merged_name
from beamish.accumulations.count import Count
from beamish.errors import PipelineError, SparkSetupError
from beamish.kernels.reserved import EVENT_TIME, INPUT, REPORT, WATERMARK
from beamish.options import Input, Options
from beamish.plan import Plan, make_later_plan, make_plan, merged_schema
from beamish.spark.compile.batch import final, final_panes
from beamish.spark.compile.stages import final_panes_of_chain, operate_later
from beamish.spark.compile.stream import event_time_us, operate, pack, select_packed, shown
from beamish.spark.endless import check_ends
from beamish.spark.millis import delay_parts
from beamish.spark.operator.watermark_sources import MergeProcessor, follows_inputs
from beamish.spark.rows.columns import NamedRows, column, name_columns
from beamish.spark.rows.types import spark_schema, spark_type
from beamish.spark.rows.watermark_column import with_watermark
from beamish.spark.rows.watermark_reports import MARKED, mark_packer, with_heartbeats
from beamish.spark.session import check_packages, check_streaming, warn_of_single_batches
from beamish.spark.shard_count import shard_count
from beamish.spark.sources.heartbeats import heartbeats
from beamish.watermarks import BoundedOutOfOrderness, ProcessingTimeLag
from beamish.windows.global_window import GlobalWindow

_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


@attrs.frozen
class NamedInputs:
    """The DataFrames of a merge, and the merge with names for their columns."""

    options: Options
    rows: tuple[NamedRows, ...]
    schema: pa.Schema
    streaming: bool
    spark: SparkSession


def panes_of_merge(options: Options, inputs: Mapping[str, DataFrame], shards: int | None) -> DataFrame:
    """The panes of a merge."""
    named = name_inputs(options, inputs)
    if not named.streaming:
        return _panes_of_batches(named, shards)
    plan, operated = _operate_streams(named, shards)
    return shown(plan, operated)


def name_inputs(options: Options, inputs: Mapping[str, DataFrame]) -> NamedInputs:
    """Match DataFrames with the inputs of a merge, and name their columns.

    Raises:
        PipelineError: an input has no DataFrame, a DataFrame no input, or some stream and some do not.
        ColumnError: a column is missing or of a type that cannot be used.
    """
    options.check()
    names = [one.name for one in options.inputs]
    for name in names:
        if not isinstance(inputs.get(name), DataFrame):
            raise PipelineError(
                f"apply({name}={inputs.get(name)!r}): must be a DataFrame, one for each of {', '.join(names)}"
            )
    for name in inputs:
        if name not in names:
            raise PipelineError(f"apply({name}=...): there is no input {name!r}; the merge has {', '.join(names)}")
    streaming = [name for name in names if inputs[name].isStreaming]
    if streaming and len(streaming) < len(names):
        still = ", ".join(name for name in names if name not in streaming)
        raise PipelineError(
            f"apply: {', '.join(streaming)} streams, {still} does not; merge streams with streams (readStream) or batches with "
            "batches (read); for a table that does not change join before or after"
        )
    rows = tuple(name_columns(options_of_input(one), inputs[one.name]) for one in options.inputs)
    found = tuple(
        Input(one.name, of_one.options.event_time, one.watermark, of_one.options.keys)
        for one, of_one in zip(options.inputs, rows, strict=True)
    )
    options = attrs.evolve(options, keys=found[0].keys, inputs=found)
    schema = merged_schema(options, [one.schema for one in rows])
    return NamedInputs(options, rows, schema, bool(streaming), rows[0].df.sparkSession)


def options_of_input(one: Input) -> Options:
    """An input as a pipeline of its own."""
    return Options(
        event_time=one.event_time,
        watermark=one.watermark,
        keys=one.keys,
        window=GlobalWindow(),
        accumulations={"__rows": Count()},
    )


def plan_for_merge(options: Options, inputs: Mapping[str, DataFrame], shards: int | None = None) -> Plan:
    """The plan of a merge for DataFrames, without a look at the session."""
    named = name_inputs(options, inputs)
    return make_plan(named.options, named.schema, shards=shard_count(named.spark, named.options, shards))


def _panes_of_batches(named: NamedInputs, shards: int | None) -> DataFrame:
    check_packages()
    options = attrs.evolve(final(named.options), watermark=None)
    plan = make_plan(options, named.schema, shards=shard_count(named.spark, options, shards))
    packed = _union(
        pack(plan, widen(plan, number, rows.df, event_time_us(rows.options)), column(EVENT_TIME), streaming=False)
        for number, rows in enumerate(named.rows)
    )
    return packed.groupBy("shard").applyInArrow(final_panes(plan), spark_schema(plan.pane_schema))


def panes_of_merged_chain(stages: Sequence[Options], inputs: Mapping[str, DataFrame], shards: int | None) -> DataFrame:
    """The last stage's panes of a chain whose first stage is a merge."""
    first, *rest = stages
    named = name_inputs(first, inputs)
    if not named.streaming:
        named = attrs.evolve(named, options=attrs.evolve(final(named.options), watermark=None))
        rest = [attrs.evolve(final(options), watermark=None) for options in rest]
    plans = [make_plan(named.options, named.schema, shards=shard_count(named.spark, named.options, shards))]
    for options in rest:
        plans.append(make_later_plan(options, plans[-1], shards=shard_count(named.spark, options, shards)))
    if not named.streaming:
        return final_panes_of_chain(plans, _panes_of_batches(named, shards))
    ticks = heartbeats(named.spark) if any(plan.needs_clock for plan in plans) else None
    _, operated = _operate_streams(named, shards, ticks=ticks, tells=True)
    return operate_later(plans[1:], operated, ticks, told=follows_inputs(plans[0]))


def _operate_streams(
    named: NamedInputs, shards: int | None, *, ticks: DataFrame | None = None, tells: bool = False
) -> tuple[Plan, DataFrame]:
    spark = named.spark
    check_streaming(spark)
    check_ends(named.options)
    plan = make_plan(named.options, named.schema, shards=shard_count(spark, named.options, shards))
    if plan.needs_clock and ticks is None:
        warn_of_single_batches()
        ticks = heartbeats(spark)
    rows = [
        widen(
            plan,
            number,
            with_watermark(one.df, one.options),
            event_time_us(one.options),
            watermark_mark(named.options.inputs[number]),
        )
        for number, one in enumerate(named.rows)
    ]
    return plan, operate_merge(plan, rows, ticks, tells=tells)


def watermark_mark(one: Input) -> Column | None:
    """Where a row takes its input's watermark, in microseconds (whole milliseconds, as Spark's); None: rows do not."""
    if isinstance(one.watermark, ProcessingTimeLag):
        return None
    delay_ms = delay_parts(one.watermark.delay.us)[0] if isinstance(one.watermark, BoundedOutOfOrderness) else 0
    return (F.unix_millis(column(WATERMARK)) - F.lit(delay_ms)) * F.lit(1000)


def widen(plan: Plan, number: int, rows: DataFrame, event_time: Column, mark: Column | None = None) -> DataFrame:
    """The rows of one input with the columns of all.

    Args:
        plan: the merge's plan.
        number: the input's.
        rows: its rows, by its own names.
        event_time: in microseconds.
        mark: where a row takes the watermark; None: nowhere.
    """
    one = plan.options.inputs[number]
    own = dict(zip(plan.options.keys, one.keys, strict=True))
    own |= {merged_name(one.name, name): name for name in rows.columns}

    def of(field: pa.Field) -> Column:
        if field.name == INPUT:
            return F.lit(number).cast("tinyint")
        return column(own[field.name]) if field.name in own else F.lit(None).cast(spark_type(field.type))

    return rows.select(
        *(of(field).alias(field.name) for field in plan.schema),
        event_time.alias(EVENT_TIME),
        (F.lit(None).cast("bigint") if mark is None else mark).alias(REPORT),
    )


def operate_merge(
    plan: Plan,
    rows: Sequence[DataFrame],
    ticks: DataFrame | None,
    only: Column | None = None,
    *,
    tells: bool = False,
) -> DataFrame:
    """The panes of rows that were widened, input by input, as bytes (``operate``).

    Args:
        plan: the merge's plan.
        rows: the rows of each input.
        ticks: heartbeats (``clock_us``), one a batch.
        only: which rows are rows (``pack``); None: all.
        tells: whether stages come after; where the shards follow the inputs' watermarks, they tell them theirs.

    Raises:
        SparkSetupError: the session does not take the least of several watermarks.
    """
    spark = rows[0].sparkSession
    if not follows_inputs(plan):
        policy = spark.conf.get(_POLICY, "min")
        if policy != "min":
            raise SparkSetupError(
                f"{_POLICY} is {policy!r}: rows of the slower input would be late; before the query starts, say\n"
                f'    spark.conf.set("{_POLICY}", "min")'
            )
        packed = _union(pack(plan, one, column(EVENT_TIME), streaming=True, only=only) for one in rows)
        return operate(plan, packed, ticks)
    assert ticks is not None  # noqa: S101 - following inputs needs the clock
    marked = _union(
        select_packed(plan, one, column(EVENT_TIME), only=only, also=(column(REPORT),)).mapInArrow(
            mark_packer(plan, number), spark_schema(MARKED)
        )
        for number, one in enumerate(rows)
    )
    if all(isinstance(one.watermark, ProcessingTimeLag) for one in plan.options.inputs):
        # Spark wants a watermark in the query; the shards follow the clock.
        ticks = ticks.withColumn(WATERMARK, F.timestamp_micros("clock_us")).withWatermark(WATERMARK, "0 seconds")
    return operate(plan, with_heartbeats(plan, marked, ticks), None, MergeProcessor(plan, tells=tells))


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
