"""The pipeline's watermark policy as Spark's ``withWatermark``.

Spark follows a column of its own, so that the column of the event times loses no row to Spark's late filter: the
operator takes event times as numbers, which carry no mark.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from beamish.kernels.reserved import WATERMARK
from beamish.options import Options
from beamish.spark.millis import delay_parts
from beamish.spark.rows.columns import column
from beamish.watermarks import BoundedOutOfOrderness, ProcessingTimeLag, Punctuated


def with_watermark(df: DataFrame, options: Options) -> DataFrame:
    """The rows, with the watermark that the pipeline says they carry."""
    match options.watermark:
        case BoundedOutOfOrderness() as policy:
            delay_ms, rest_us = delay_parts(policy.delay.us)
            time = column(options.event_time)
            counted = time if policy.max_future is None else F.when(_not_future(time, policy.max_future.us), time)
            followed = counted if rest_us == 0 else F.timestamp_micros(F.unix_micros(counted) - F.lit(rest_us))
            return df.withColumn(WATERMARK, followed).withWatermark(WATERMARK, f"{delay_ms} milliseconds")
        case Punctuated(column=name):
            return df.withColumn(WATERMARK, column(name)).withWatermark(WATERMARK, "0 seconds")
    return df


def _not_future(time: Column, max_future_us: int) -> Column:
    """Whether a row's time is not later than the batch's clock by more than this; a batch run again has the same clock."""
    return F.unix_micros(time) <= F.unix_micros(F.current_timestamp()) + F.lit(max_future_us)


def ticks_with_watermark(ticks: DataFrame, options: Options) -> DataFrame:
    """The heartbeats; under ProcessingTimeLag they bring the query's watermark, since rows bring none."""
    if not isinstance(options.watermark, ProcessingTimeLag):
        return ticks
    lag_ms, rest_us = delay_parts(options.watermark.lag.us)
    followed = F.timestamp_micros(F.col("clock_us") - F.lit(rest_us))
    return ticks.withColumn(WATERMARK, followed).withWatermark(WATERMARK, f"{lag_ms} milliseconds")
