"""A source's watermark policy as Spark's ``withWatermark``.

Spark follows a separate column, so that its late filter does not drop rows: the operator reads event times as numbers, which carry no mark.
"""

from __future__ import annotations

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from beamish.durations import Duration
from beamish.instants import EARLIEST_US, LATEST_US
from beamish.kernels.column_names import WATERMARK, has_no_event_time
from beamish.spark.rows.columns import NamedRows, column
from beamish.spark.runtime.millis import delay_parts
from beamish.watermarks import Punctuated, Watermark


@attrs.frozen
class SourceRows:
    """The rows of a source, prepared for packing.

    Attributes:
        df: has the columns of the source, and its watermark.
        event_time_us: the event time, in microseconds.
        report_us: the watermark that a row advances its source to, in microseconds; None: rows do not.
        is_row: false for rows that only carry a watermark; None: all are rows. (A filter would not work: Spark pushes it below
            ``withWatermark``.)
    """

    df: DataFrame
    event_time_us: Column
    report_us: Column | None = None
    is_row: Column | None = None


def with_watermark(rows: NamedRows) -> SourceRows:
    """Add the watermark of the source's policy."""
    source, df = rows.source, rows.df
    if source.gives_panes:
        return SourceRows(df, F.unix_micros("timestamp"))  # the query that writes the panes advances the watermark
    event_time_us = event_time_us_of(source.event_time)
    if has_no_event_time(source.event_time):  # Spark requires a watermark in the query; this one never advances
        never = df.withColumn(WATERMARK, F.timestamp_micros(F.lit(0))).withWatermark(WATERMARK, "0 seconds")
        return SourceRows(never, event_time_us, F.lit(0).cast("long"))
    policy = source.watermark
    followed = None if policy is None else policy.followed_column(source.event_time)
    if policy is None or followed is None or not source.is_waited_for:
        return SourceRows(df, event_time_us)
    delay_ms, rest_us = delay_parts(policy.delay.us)
    if followed in rows.marks:  # already followed by Spark, with the same delay (columns.py)
        return SourceRows(df, event_time_us, _report_us(_counted(followed, policy), delay_ms))
    time = _counted(followed, policy)
    mark = time if rest_us == 0 else F.timestamp_micros(F.unix_micros(time) - F.lit(rest_us))
    marked = df.withColumn(WATERMARK, mark).withWatermark(WATERMARK, f"{delay_ms} milliseconds")
    return SourceRows(marked, event_time_us, _report_us(column(WATERMARK), delay_ms))


def _counted(followed: str, policy: Watermark) -> Column:
    """The times that move the watermark, clipped so that a delay fits into 64 bits; null if missing."""
    return _counted_time(column(followed), policy, F.current_timestamp())


def _counted_time(time: Column, policy: Watermark, now: Column) -> Column:
    counts = time >= F.timestamp_micros(F.lit(EARLIEST_US)) if isinstance(policy, Punctuated) else is_in_range(time)
    if policy.max_future is not None:
        counts &= _not_future(time, policy.max_future, now)
    return F.when(counts, time)


def reported_us(time: Column, policy: Watermark, now: Column) -> Column:
    """The watermark that past rows advanced their source to, in microseconds.

    Args:
        time: the column that the policy follows.
        policy: the source's.
        now: the clock of their batch.
    """
    delay_ms, rest_us = delay_parts(policy.delay.us)
    counted = _counted_time(time, policy, now)
    mark = counted if rest_us == 0 else F.timestamp_micros(F.unix_micros(counted) - F.lit(rest_us))
    return _report_us(mark, delay_ms)


def _report_us(time: Column, delay_ms: int) -> Column:
    return (F.unix_millis(time) - F.lit(delay_ms)) * F.lit(1000)


def event_time_us_of(name: str) -> Column:
    """The event time of rows in microseconds, from the column of this name; null for rows without."""
    return F.lit(None).cast("long") if has_no_event_time(name) else F.unix_micros(column(name))


def is_in_range(time: Column) -> Column:
    """Whether rows have a supported event time, of the years 1 to 9999."""
    return time.between(*(F.timestamp_micros(F.lit(us)) for us in (EARLIEST_US, LATEST_US)))


def _not_future(time: Column, max_future: Duration, now: Column) -> Column:
    """Whether a row's time is at most this much later than the batch's clock, which is stable when a batch is replayed."""
    return F.unix_micros(time) <= F.unix_micros(now) + F.lit(max_future.us)
