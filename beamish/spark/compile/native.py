"""Batches by Spark's own operators where they mean the same: aggregations and as-of joins (docs/rules/running.md#batch-plan).

Supports built-in windows and accumulations with an equivalent Spark aggregate; ``why_not_native`` has the reason for others,
which the engine runs (batch.py).

An as-of join of batch DataFrames as Spark's own window function (docs/rules/running.md#batch-plan). Rows and changes are sorted together by
key and time, and each row is joined with the last change before it. ``why_not_native_as_of`` has the reason for unsupported plans, which
the engine runs (batch.py).

An over stage on a batch DataFrame as Spark's own window functions: aggregates over the stage's frame, and functions over the order of all
rows of a key. ``why_not_native_over`` has the reason for unsupported plans, which the engine runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.accumulations import (
    BitAnd,
    BitOr,
    BitXor,
    BoolAnd,
    BoolOr,
    Count,
    CountDistinct,
    CountIf,
    Max,
    Mean,
    Min,
    StdDev,
    Sum,
    Variance,
)
from beamish.accumulations.base.accumulation import Accumulation
from beamish.contract.updates import WINDOW
from beamish.durations import Duration
from beamish.errors import NumericOverflowError, values_are_hidden
from beamish.kernels.column_names import PREFIX, has_no_event_time
from beamish.kernels.order import is_orderable
from beamish.kernels.state_fields import mean_overflow, sum_overflow
from beamish.kinds.as_of.plan import TABLE, AsOfPlan
from beamish.kinds.over.options import DenseRank, Lag, Lead, OverFunction, PrecedingRows, Rank, RowNumber, Unbounded
from beamish.kinds.over.plan import BoundValue, OverPlan
from beamish.kinds.versions.options import VALID_FROM
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.modes import TimestampCombiner
from beamish.pane import PaneChange
from beamish.spark.rows.columns import column
from beamish.spark.rows.json_text import to_json
from beamish.spark.rows.raised import raised
from beamish.spark.rows.schemas import spark_schema, spark_type
from beamish.spark.rows.watermark_column import is_in_range
from beamish.windows import FixedWindows, GlobalWindow, Sessions, SlidingWindows, WindowOption

_WINDOW = PREFIX + "window"
_ROWS = PREFIX + "rows"
_PANE_TIME = PREFIX + "pane_time_us"


@attrs.frozen
class _Values:
    """The values of an accumulation, the same under every setting of the session: Spark's ``sum`` wraps around, is null or fails.

    Attributes:
        column: its column.
        type: the Arrow type of that.
        gives: the Arrow type of its values.
        place: the key and window of a group, for messages; None: it has none, or values are hidden.
        over: makes an aggregate one of a frame; by default it is of a group.
        error: makes the error of an overflow one of the stage.
    """

    column: Column
    type: pa.DataType
    gives: pa.DataType
    place: Column | None
    over: Callable[[Column], Column] = lambda aggregate: aggregate
    error: Callable[[NumericOverflowError], NumericOverflowError] = lambda error: error

    def count(self) -> Column:
        return self.over(F.count(self.column))

    def sum(self, name: str) -> Column:
        error = self.error(sum_overflow(name, self.gives))
        if pa.types.is_int64(self.type):
            return self._long_sum(error)
        total = self.over(F.try_sum(self.column) if self._is_decimal else F.sum(self.column))
        return self._unless_null(total, error) if self._is_decimal else total

    def mean(self, name: str) -> Column:
        mean = self.over(F.try_avg(self.column) if self._is_decimal else F.avg(self.column))
        error = self.error(mean_overflow(name, self.gives))
        return self._unless_null(mean, error) if self._is_decimal else mean

    def spread(self, population: Callable[..., Column], sample: Callable[..., Column], *, of_all: bool) -> Column:
        if of_all:
            return self.over(population(self.column))
        # of one value null, NaN under spark.sql.legacy.statisticalAggregate
        return F.when(self.count() > 1, self.over(sample(self.column)))

    @property
    def _is_decimal(self) -> bool:
        return bool(pa.types.is_decimal(self.type))

    def _long_sum(self, error: NumericOverflowError) -> Column:
        """The exact sum of 64 bits, by halves, which do not overflow themselves."""
        low_32 = F.lit(0xFFFFFFFF)
        high, low = self.over(F.sum(F.shiftright(self.column, 32))), self.over(F.sum(self.column.bitwiseAND(low_32)))
        high = high + F.shiftright(low, 32)
        total = F.shiftleft(high, 32).bitwiseOR(low.bitwiseAND(low_32))
        return F.when(~high.between(-(2**31), 2**31 - 1), raised(error, "bigint", self.place)).otherwise(total)

    def _unless_null(self, value: Column, error: NumericOverflowError) -> Column:
        """The value; an error where it is null though there are values."""
        error_column = raised(error, spark_type(self.gives), self.place)
        return F.when(value.isNull() & (self.count() > 0), error_column).otherwise(value)


_AGGREGATES: Mapping[type[Accumulation], Callable[[Any, _Values], Column]] = {
    Count: lambda a, values: values.over(F.count(F.lit(1))) if a.column is None else values.count(),
    Sum: lambda a, values: values.sum(a.column),
    Min: lambda _, values: values.over(F.min(values.column)),
    Max: lambda _, values: values.over(F.max(values.column)),
    Mean: lambda a, values: values.mean(a.column),
    Variance: lambda a, values: values.spread(F.var_pop, F.var_samp, of_all=a.population),
    StdDev: lambda a, values: values.spread(F.stddev_pop, F.stddev_samp, of_all=a.population),
    BitAnd: lambda _, values: values.over(F.bit_and(values.column)),
    BitOr: lambda _, values: values.over(F.bit_or(values.column)),
    BitXor: lambda _, values: values.over(F.bit_xor(values.column)),
    BoolAnd: lambda _, values: values.over(F.bool_and(values.column)),
    BoolOr: lambda _, values: values.over(F.bool_or(values.column)),
    CountIf: lambda _, values: values.over(F.count_if(values.column)),
    CountDistinct: lambda a, _: F.count_distinct(*map(column, a.columns)),
}


def _aggregate(plan: WindowPlan, bound: Any) -> Column:
    """The values of an accumulation per group."""
    columns = bound.columns or (None,)
    values = _Values(
        F.lit(1) if columns[0] is None else column(columns[0]),
        bound.types[0] if bound.types else pa.int32(),
        plan.pane_schema.field(bound.name).type,
        _place(plan),
    )
    return _AGGREGATES[type(bound.accumulation)](bound.accumulation, values).alias(bound.name)


def _place(plan: WindowPlan) -> Column | None:
    """The key and window of a group, as JSON."""
    by, type_ = [column(name) for name in plan.key_schema.names], spark_schema(plan.key_schema)
    if not plan.window.is_all_of_time:
        by.append(F.col(_WINDOW).alias("window"))
        type_ = type_.add("window", spark_type(WINDOW))
    return None if not by or values_are_hidden() else to_json(F.struct(*by), type_)


@attrs.frozen
class _NativeWindow:
    """A window option in Spark.

    Grouping by the start as a number, to use the fast map of Spark's hash aggregation, was measured to be slower with as many
    groups as windows have.

    Attributes:
        group: the grouping columns: Spark's own window, a struct; empty for a global window.
        why_not: why Spark cannot group by it with these keys; empty if it can.
        added_us: correction of its end.
    """

    group: Callable[[Any, Column], list[Column]]
    why_not: Callable[[Any, pa.Schema], str] = lambda *_: ""
    added_us: int = 0


def _window(time: Column, size: Duration, period: Duration, offset: Duration) -> list[Column]:
    words = (f"{us} microseconds" for us in (size.us, period.us, offset.us % period.us))
    return [F.window(time, *words).alias(_WINDOW)]


def _why_not_sliding(window: SlidingWindows, _: pa.Schema) -> str:
    if window.period > window.size:
        return "Spark's window() takes no slide above the size"
    if math.ceil(float(window.size.us) / float(window.period.us)) != -(-window.size.us // window.period.us):
        return "Spark's window() divides the size by the slide as doubles, which would lose a window of these"
    return ""


def _why_not_sessions(window: Sessions, keys: pa.Schema) -> str:
    if window.gap.us <= 1:
        return "Spark's session_window merges sessions that touch, and a gap of a microsecond cannot be made shorter"
    if any(pa.types.is_nested(key.type) or pa.types.is_floating(key.type) for key in keys):
        return "Spark's session_window fails on keys where -0.0 and 0.0 are one"
    return ""


_WINDOWS: Mapping[type[WindowOption], _NativeWindow] = {
    FixedWindows: _NativeWindow(lambda w, time: _window(time, w.size, w.size, w.offset)),
    SlidingWindows: _NativeWindow(lambda w, time: _window(time, w.size, w.period, w.offset), _why_not_sliding),
    # session_window merges sessions that touch: use a gap shorter by one microsecond, and add it to the end.
    Sessions: _NativeWindow(
        lambda w, time: [F.session_window(time, f"{w.gap.us - 1} microseconds").alias(_WINDOW)],
        _why_not_sessions,
        added_us=1,
    ),
    GlobalWindow: _NativeWindow(lambda *_: []),
}


def why_not_native(plan: WindowPlan) -> str:
    """Why a plan cannot use Spark's own aggregation; empty if it can."""
    if plan.has_several_inputs:
        return "it has several inputs"
    if plan.takes_panes:
        return "it takes the panes of another stage"
    if has_no_event_time(plan.takes[0].event_time):
        return "rows have no event time"
    if plan.signed:
        return "some rows retract others"
    if plan.options.where is not None:
        return "where(...) is not Spark's, and may treat nulls and types differently"
    if plan.options.deduplication is not None:
        return "deduplication runs in the engine"
    if plan.options.drops_errors:
        return "on_error('drop') looks for the rows that raise, where Spark's aggregation would stop"
    if plan.options.with_dropped:
        return "with_dropped() lists the rows without event time, which Spark's aggregation would not show"
    native = _WINDOWS.get(type(plan.window))
    if native is None:
        return f"Spark has no window like {plan.window!r}"
    why_not = native.why_not(plan.window, plan.key_schema)
    if why_not:
        return why_not
    for bound in plan.accumulations:
        if type(bound.accumulation) not in _AGGREGATES:
            return f"Spark has no aggregate with exactly the semantics of {bound.name}={bound.accumulation!r}"
    return ""


def native_panes(plan: WindowPlan, df: DataFrame) -> DataFrame:
    """The final panes of a batch DataFrame, for a supported plan."""
    time = column(plan.takes[0].event_time)
    rows = df.where(is_in_range(time))
    by = [*map(column, plan.key_schema.names), *_WINDOWS[type(plan.window)].group(plan.window, time)]
    values = [_aggregate(plan, bound) for bound in plan.accumulations]
    # Fields of a pane other than the values are computed from the group if possible: each aggregate costs time per row.
    if plan.options.combiner is not TimestampCombiner.END_OF_WINDOW:
        least = plan.options.combiner is TimestampCombiner.EARLIEST
        values.append((F.min if least else F.max)(F.unix_micros(time)).alias(_PANE_TIME))
    if by:
        return rows.groupBy(*by).agg(*values).select(*_output(plan))
    panes = rows.agg(*values, F.count(F.lit(1)).alias(_ROWS))  # one row, also for empty input
    return panes.where(F.col(_ROWS) > 0).select(*_output(plan))


def _bounds(plan: WindowPlan) -> tuple[Column, Column]:
    """Start and end of a group's window, in microseconds; null for the global window."""
    if plan.window.is_all_of_time:
        nothing = F.lit(None).cast("bigint")
        return nothing, nothing
    added_us = _WINDOWS[type(plan.window)].added_us
    return F.unix_micros(f"{_WINDOW}.start"), F.unix_micros(f"{_WINDOW}.end") + F.lit(added_us)


def final_pane(sequence: Column) -> Column:
    """The column ``pane`` of a final row, the only pane of its window."""
    only = {"kind": "PANE", "timing": "ON_TIME", "index": 0, "on_time_index": 0, "is_first": True, "is_last": True}
    only["change"] = str(PaneChange.INSERT)
    known = [F.lit(value).alias(name) for name, value in only.items()]
    return F.struct(*known, sequence.alias("sequence"), F.lit(None).cast(t.TimestampType()).alias("watermark"))


def _output(plan: WindowPlan) -> list[Column]:
    """The columns of the plan's ``pane_schema``."""
    start, end = _bounds(plan)
    at_end = plan.options.combiner is TimestampCombiner.END_OF_WINDOW
    pane_time_us = end - F.lit(1) if at_end else F.col(_PANE_TIME)
    schema = spark_schema(plan.pane_schema)
    made = {
        "window": F.struct(F.timestamp_micros(start).alias("start"), F.timestamp_micros(end).alias("end")),
        # A key has one pane per window, and starts are distinct: no counter per key is needed.
        "pane": final_pane(F.coalesce(start, F.lit(0))),
        "timestamp": F.timestamp_micros(pane_time_us),
    }
    return [made.get(field.name, column(field.name)).cast(field.dataType).alias(field.name) for field in schema]


_KEY, _TIME, _IS_CHANGE = PREFIX + "key.", PREFIX + "time_us", PREFIX + "is_change"
_SEQUENCE, _SETS, _VALUE, _ROW = PREFIX + "sequence", PREFIX + "sets", PREFIX + "value.", PREFIX + "row."
_MET, _NUMBER, _RAW = PREFIX + "met", PREFIX + "number", PREFIX + "raw_"


def why_not_native_as_of(plan: AsOfPlan) -> str:
    """Why a plan cannot use Spark's own window function; empty if it can."""
    if any(relation.is_panes for relation in plan.takes):
        return "it takes the panes of another stage"
    if any(relation.where is not None for relation in plan.takes):
        return "where(...) is not Spark's, and may treat nulls and types differently"
    if plan.options.with_dropped:
        return "with_dropped() lists the rows without event time, which Spark would not show"
    if plan.table.options.only_updated:
        return "only_updated needs the start of equal values"
    keys, values = plan.table.key_schema, plan.table.value_schema
    if not len(keys):
        return "there is a single key, which Spark would warn about"
    if any(pa.types.is_nested(key.type) or pa.types.is_floating(key.type) for key in keys):
        return "Spark compares null, -0.0 and 0.0 within such keys differently"
    for value in values:
        if not is_orderable(value.type):
            return f"Spark cannot order by {value.name!r}, which decides between changes of the same time"
    return ""


def native_joined(plan: AsOfPlan, rows: DataFrame, changes: DataFrame) -> DataFrame:
    """The final rows of an as-of join of batch DataFrames, for a supported plan."""
    both = _rows(plan, rows).unionAll(_changes(plan, changes))
    first = F.col(_IS_CHANGE).desc() if plan.options.allow_exact_matches else F.col(_IS_CHANGE).asc()
    ties = [_SEQUENCE, _SETS, *(f"{_VALUE}{name}" for name in plan.table.value_schema.names)]
    keys = [column(f"{_KEY}{number}") for number in range(len(plan.left.keys))]
    before = Window.partitionBy(*keys).orderBy(_TIME, first, *(column(name).asc_nulls_first() for name in ties))
    change = F.struct(_TIME, _SETS, *(column(f"{_VALUE}{name}") for name in plan.table.value_schema.names))
    last = F.last(F.when(F.col(_IS_CHANGE), change), ignorenulls=True)
    met = {_MET: last.over(before.rowsBetween(Window.unboundedPreceding, 0)), _NUMBER: F.row_number().over(before)}
    joined = both.withColumns(met).where(~F.col(_IS_CHANGE))
    if plan.options.how == "inner":
        joined = joined.where(_matches(plan))
    return joined.select(*_joined_output(plan))


def _with_keys(df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Drop rows without a key."""
    return reduce(lambda df, name: df.where(column(name).isNotNull()), keys, df)


def _rows(plan: AsOfPlan, df: DataFrame) -> DataFrame:
    time = column(str(plan.left.event_time))
    made: dict[str, Column] = {
        _TIME: F.unix_micros(time),
        _IS_CHANGE: F.lit(col=False),
        **{f"{_KEY}{number}": column(name) for number, name in enumerate(plan.left.keys)},
        **{f"{_ROW}{name}": column(name) for name in plan.left_schema.names},
    }
    if plan.options.how == "inner":  # null matches nothing
        df = _with_keys(df, plan.left.keys)
    return df.where(is_in_range(time)).select(*_columns(plan, made))


def _changes(plan: AsOfPlan, df: DataFrame) -> DataFrame:
    options, takes = plan.table.options, plan.takes[TABLE]
    time = column(str(takes.event_time))
    deletes = F.lit(col=False) if options.deleted is None else F.coalesce(column(options.deleted), F.lit(col=False))
    made: dict[str, Column] = {
        _TIME: F.unix_micros(time),
        _IS_CHANGE: F.lit(col=True),
        _SETS: ~deletes.cast("boolean"),
        **{f"{_KEY}{number}": column(name) for number, name in enumerate(takes.keys)},
        **{f"{_VALUE}{name}": column(name) for name in plan.table.value_schema.names},
    }
    if options.sequence_by is not None:
        made[_SEQUENCE] = column(options.sequence_by)
    return _with_keys(df, takes.keys).where(is_in_range(time)).select(*_columns(plan, made))


def _columns(plan: AsOfPlan, made: Mapping[str, Column]) -> Iterator[Column]:
    """The common columns of rows and changes; null where not applicable."""
    sequence = plan.table.sequence
    types = {_TIME: pa.int64(), _IS_CHANGE: pa.bool_(), _SETS: pa.bool_()}
    types[_SEQUENCE] = pa.int8() if sequence is None else sequence.type
    types |= {f"{_KEY}{number}": key.type for number, key in enumerate(plan.table.key_schema)}
    types |= {f"{_VALUE}{value.name}": value.type for value in plan.table.value_schema}
    types |= {f"{_ROW}{field.name}": field.type for field in plan.left_schema}
    for name, type_ in types.items():
        yield made.get(name, F.lit(None)).cast(spark_type(type_)).alias(name)


def _matches(plan: AsOfPlan) -> Column:
    """Whether a row has a match."""
    matches = F.coalesce(F.col(_MET)[_SETS], F.lit(col=False))
    if plan.options.tolerance is None:
        return matches
    return matches & (F.col(_TIME) - F.col(_MET)[_TIME] <= F.lit(plan.options.tolerance.us))


def _joined_output(plan: AsOfPlan) -> Iterator[Column]:
    """The columns of the plan's output."""
    assert plan.gives.schema is not None  # noqa: S101 - it is bound
    match = [F.col(_MET)[f"{_VALUE}{name}"].alias(name) for name in plan.table.value_schema.names]
    match.append(F.timestamp_micros(F.col(_MET)[_TIME]).alias(VALID_FROM))
    made = {
        str(plan.takes[TABLE].name): F.when(_matches(plan), F.struct(*match)),
        "window": F.lit(None),
        "pane": final_pane(F.col(_NUMBER)),
        "timestamp": F.timestamp_micros(F.col(_TIME)),
    }
    for field in spark_schema(plan.gives.schema):
        made_of = made[field.name] if field.name in made else column(f"{_ROW}{field.name}")
        yield made_of.cast(field.dataType).alias(field.name)


_OVER = {*_AGGREGATES} - {CountDistinct}
"""Accumulations that Spark has over frames too."""


def why_not_native_over(plan: OverPlan) -> str:
    """Why a plan cannot use Spark's own window functions; empty if it can."""
    if plan.takes.is_panes:
        return "it takes the panes of another stage"
    if plan.takes.retracts:
        return "some rows retract others"
    if plan.takes.where is not None:
        return "where(...) is not Spark's, and may treat nulls and types differently"
    if plan.options.with_dropped:
        return "with_dropped() lists the rows without event time, which Spark would not show"
    if not len(plan.key_schema):
        return "there is a single key, which Spark would warn about"
    if any(pa.types.is_nested(key.type) or pa.types.is_floating(key.type) for key in plan.key_schema):
        return "Spark compares null, -0.0 and 0.0 within such keys differently"
    for one in plan.values:
        is_known = isinstance(one.of, (Lag, Lead, RowNumber, Rank, DenseRank)) or type(one.of) in _OVER
        if not is_known:
            return f"Spark has nothing with exactly the semantics of {one.name}={one.of!r}"
    unordered = [field.name for field in plan.takes.own_columns if not is_orderable(field.type)]
    if unordered and any(_needs_all(plan, one) for one in plan.values):
        return f"Spark cannot order by {unordered[0]!r}, which decides between rows of the same time"
    return ""


def _needs_all(plan: OverPlan, one: BoundValue) -> bool:
    """Whether a value depends on the order of rows of the same time."""
    if isinstance(one.of, OverFunction):
        return isinstance(one.of, (Lag, Lead, RowNumber))
    return isinstance(plan.options.frame, PrecedingRows)


def native_over(plan: OverPlan, df: DataFrame) -> DataFrame:
    """The final rows of an over stage on a batch DataFrame, for a supported plan."""
    time = column(str(plan.takes.event_time))
    rows = df.where(is_in_range(time)).withColumn(_TIME, F.unix_micros(time))
    key = Window.partitionBy(*map(column, plan.takes.keys))
    by = [] if plan.options.order_by is None else [column(plan.options.order_by).asc_nulls_first()]
    equal = {*plan.takes.keys, plan.takes.event_time}  # of rows with the same key and time
    ties = [column(name).asc_nulls_first() for name in plan.takes.own_columns.names if name not in equal]
    in_time, peers = key.orderBy(_TIME), key.orderBy(_TIME, *by)
    every = key.orderBy(_TIME, *by, *ties) if any(_needs_all(plan, one) for one in plan.values) else in_time
    frame = _frame(plan, in_time, every)
    raw = {_NUMBER: F.row_number().over(every)}

    def once(value: Column) -> Column:
        """A window function as a column, since Spark computes one again for each place that names it."""
        raw[f"{_RAW}{len(raw)}"] = value
        return F.col(f"{_RAW}{len(raw) - 1}")

    values = {one.name: _over(one, frame, every, peers, once) for one in plan.values}
    return rows.withColumns(raw).select("*", *_named_values(values)).select(*_over_output(plan))


def _named_values(values: Mapping[str, Column]) -> Iterator[Column]:
    """Values under other names: else one would be read where a column of its name is meant."""
    for name, value in values.items():
        yield value.alias(f"{_VALUE}{name}")


def _frame(plan: OverPlan, in_time: WindowSpec, every: WindowSpec) -> WindowSpec:
    frame = plan.options.frame
    if isinstance(frame, PrecedingRows):
        return every.rowsBetween(-frame.rows, 0)
    return in_time.rangeBetween(Window.unboundedPreceding if isinstance(frame, Unbounded) else -frame.span_us, 0)


def _over(
    one: BoundValue, frame: WindowSpec, every: WindowSpec, peers: WindowSpec, once: Callable[[Column], Column]
) -> Column:
    """The value of a row."""
    of = one.of
    if isinstance(of, (Lag, Lead)):
        shift = F.lag if isinstance(of, Lag) else F.lead
        if of.default is None:
            return once(shift(column(of.column), of.n).over(every))
        there = once(shift(F.struct(column(of.column).alias("value")), of.n).over(every))
        default = F.lit(of.default).cast(spark_type(one.type))
        return F.when(there.isNull(), default).otherwise(there["value"])
    counts: dict[type, tuple[Callable[[], Column], WindowSpec]] = {
        RowNumber: (F.row_number, every),
        Rank: (F.rank, peers),
        DenseRank: (F.dense_rank, peers),
    }
    if type(of) in counts:
        function, window = counts[type(of)]
        return once(function().over(window))
    name = one.columns[0] if one.columns else None
    values = _Values(
        F.lit(1) if name is None else column(name),
        one.types[0] if one.types else pa.int32(),
        one.type,
        None,
        lambda aggregate: once(aggregate.over(frame)),
        one.overflow,
    )
    return _AGGREGATES[type(of)](of, values)


def _over_output(plan: OverPlan) -> Iterator[Column]:
    """The columns of the plan's output."""
    assert plan.gives.schema is not None  # noqa: S101 - it is bound
    made = {f"{one.name}": column(f"{_VALUE}{one.name}") for one in plan.values}
    made |= {"window": F.lit(None), "pane": final_pane(F.col(_NUMBER)), "timestamp": F.timestamp_micros(F.col(_TIME))}
    for field in spark_schema(plan.gives.schema):
        made_of = made[field.name] if field.name in made else column(field.name)
        yield made_of.cast(field.dataType).alias(field.name)
