"""A pipeline on a batch DataFrame as Spark's own aggregation: same columns, same meaning (RULES.md 25, 26).

It takes built-in windows and the accumulations that Spark has an aggregate of the same meaning for; what it does not
take, ``why_not_native`` says, and the engine runs it (batch.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from beamish.accumulations import Count, CountDistinct, Max, Mean, Min, StdDev, Sum, Variance
from beamish.accumulations.accumulation import Accumulation
from beamish.kernels.reserved import PREFIX
from beamish.modes import TimestampCombiner
from beamish.plan import Plan
from beamish.spark.rows.columns import column
from beamish.spark.rows.types import spark_schema
from beamish.windows import FixedWindows, GlobalWindow, Sessions, SlidingWindows

_WINDOW = PREFIX + "window"
_ROWS = PREFIX + "rows"
_STAMP = PREFIX + "stamp_us"


def _count(accumulation: Any) -> Column:
    return F.count(F.lit(1) if accumulation.column is None else column(accumulation.column))


_AGGREGATES: Mapping[type[Accumulation], Callable[[Any], Column]] = {
    Count: _count,
    Sum: lambda a: F.sum(column(a.column)),
    Min: lambda a: F.min(column(a.column)),
    Max: lambda a: F.max(column(a.column)),
    Mean: lambda a: F.avg(column(a.column)),
    Variance: lambda a: (F.var_pop if a.population else F.var_samp)(column(a.column)),
    StdDev: lambda a: (F.stddev_pop if a.population else F.stddev_samp)(column(a.column)),
    CountDistinct: lambda a: F.count_distinct(*map(column, a.columns)),
}


def why_not_native(plan: Plan) -> str:
    """Why a plan is not one for Spark's own aggregation; empty if it is."""
    window = plan.window
    if plan.options.with_dropped:
        return "with_dropped() lists the rows without event time, which Spark's aggregation would not show"
    if not isinstance(window, (FixedWindows, SlidingWindows, Sessions, GlobalWindow)):
        return f"Spark has no window like {window!r}"
    if isinstance(window, SlidingWindows) and window.period > window.size:
        return "Spark's window() takes no slide above the size"
    if isinstance(window, Sessions) and window.gap.us <= 1:
        return "Spark's session_window merges sessions that touch, and a gap of a microsecond cannot be made shorter"
    if isinstance(window, Sessions) and any(
        pa.types.is_nested(key.type) or pa.types.is_floating(key.type) for key in plan.key_schema
    ):
        return "Spark's session_window fails on keys of which -0.0 and 0.0 are one"
    for bound in plan.accumulations:
        if type(bound.accumulation) not in _AGGREGATES:
            return f"Spark has no aggregate of exactly the meaning of {bound.name}={bound.accumulation!r}"
    return ""


def native_panes(plan: Plan, df: DataFrame) -> DataFrame:
    """The final panes of a batch DataFrame, for a plan with nothing against it."""
    time = column(plan.options.event_time)
    rows, by = df.where(time.isNotNull()), [*map(column, plan.key_schema.names), *_group(plan, time)]
    values = [
        _AGGREGATES[type(bound.accumulation)](bound.accumulation).alias(bound.name) for bound in plan.accumulations
    ]
    # What a pane's row needs beside the values is computed from the group where it can be: an aggregate more is paid
    # for by every row.
    if plan.options.combiner is not TimestampCombiner.END_OF_WINDOW:
        least = plan.options.combiner is TimestampCombiner.EARLIEST
        values.append((F.min if least else F.max)(F.unix_micros(time)).alias(_STAMP))
    if by:
        return rows.groupBy(*by).agg(*values).select(*_output(plan))
    panes = rows.agg(*values, F.count(F.lit(1)).alias(_ROWS))  # one row, also where there is none to count
    return panes.where(F.col(_ROWS) > 0).select(*_output(plan))


def _group(plan: Plan, time: Column) -> list[Column]:
    """What to group by for the windows: Spark's own window, a struct (none: all rows are in one window).

    Spark's fast map in front of its hash aggregation takes no structs, and with as many groups as windows have it only
    costs: grouping by the start as a number was measured to be slower.
    """
    window = plan.window
    if isinstance(window, (FixedWindows, SlidingWindows)):
        period = window.period.us if isinstance(window, SlidingWindows) else window.size.us
        size, slide, offset = (f"{us} microseconds" for us in (window.size.us, period, window.offset.us % period))
        return [F.window(time, size, slide, offset).alias(_WINDOW)]
    if isinstance(window, Sessions):
        # session_window merges sessions that touch: one microsecond less, and added to the end again.
        return [F.session_window(time, f"{window.gap.us - 1} microseconds").alias(_WINDOW)]
    return []


def _bounds(plan: Plan) -> tuple[Column, Column]:
    """Start and end of a group's window, in microseconds; null for the global window."""
    if plan.is_global:
        nothing = F.lit(None).cast("bigint")
        return nothing, nothing
    cut = 1 if isinstance(plan.window, Sessions) else 0
    return F.unix_micros(f"{_WINDOW}.start"), F.unix_micros(f"{_WINDOW}.end") + F.lit(cut)


def _output(plan: Plan) -> list[Column]:
    """The columns of the plan's ``pane_schema``."""
    start, end = _bounds(plan)
    at_end = plan.options.combiner is TimestampCombiner.END_OF_WINDOW
    stamp = end - F.lit(1) if at_end else F.col(_STAMP)
    schema = spark_schema(plan.pane_schema)
    first = {"kind": "PANE", "timing": "ON_TIME", "index": 0, "on_time_index": 0, "is_first": True, "is_last": True}
    made = {
        "window": F.struct(F.timestamp_micros(start).alias("start"), F.timestamp_micros(end).alias("end")),
        "pane": F.struct(*(F.lit(value).alias(name) for name, value in first.items())),
        "timestamp": F.timestamp_micros(stamp),
    }
    return [made.get(field.name, column(field.name)).cast(field.dataType).alias(field.name) for field in schema]
