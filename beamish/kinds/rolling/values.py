"""Values over spans: recombined from slices, for many keys and boundaries at once.

A span of a key at a boundary is a range of the key's slices in order of time. Counts, and sums of whole numbers that stay in
range, are differences of running totals, which are exact; all other accumulators are combined range by range, in order of time. So
equal slices give equal values, bit by bit, whatever was computed before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.errors import NumericOverflowError, UserFunctionError, cause, shown
from beamish.instants import instant_in_words
from beamish.kernels.buffers import Flags, Ints, cast, column_of, numbers, valid
from beamish.kernels.groups import Groups
from beamish.kernels.state_fields import Field
from beamish.kinds.rolling.plan import RollingPlan
from beamish.kinds.window.plan.binding import BoundAccumulation

_AT_ONCE = 2_000_000
"""Approximate number of accumulators that are combined at once."""
_EXACT = 2**53


@attrs.frozen(eq=False)
class KeySlices:
    """Slices, ordered by key and then by start.

    Attributes:
        code: int64[n], the code of the key of each.
        start_us: int64[n], where it starts.
        state: n accumulators.
    """

    code: Ints
    start_us: Ints
    state: pa.Table

    @classmethod
    def ordered(cls, code: Ints, start_us: Ints, state: pa.Table) -> KeySlices:
        """Slices in any order."""
        order = np.lexsort((start_us, code))
        return cls(code[order], start_us[order], state.take(pa.array(order)).combine_chunks())

    def ranges(self, code: Ints, least_us: Ints, below_us: Ints) -> tuple[Ints, Ints]:
        """The range of slices of each key that start in a range of times: its first slice, and the one after its last."""
        times = np.unique(self.start_us)
        places = len(times) + 1
        own = self.code * places + np.searchsorted(times, self.start_us)
        first, last = (
            np.searchsorted(own, code * places + np.searchsorted(times, bound)) for bound in (least_us, below_us)
        )
        return first, last


@attrs.frozen(eq=False)
class Values:
    """The values of keys at boundaries.

    Attributes:
        table: n rows of the plan's ``value_schema``.
        some: bool[n], whether the key has a row in its longest span, or ahead of a span.
    """

    table: pa.Table
    some: Flags


def values_at(plan: RollingPlan, slices: KeySlices, keys: pa.Table, code: Ints, boundary_us: Ints) -> Values:
    """The values of keys at boundaries.

    Args:
        plan: of the stage.
        slices: all slices that may count there.
        keys: the keys, by code; for messages.
        code, boundary_us: int64[n].
    """
    first, last = slices.ranges(code, boundary_us - plan.rolling.reach_us, boundary_us)
    some = last > first
    ranges = [
        slices.ranges(code, boundary_us - span.leaves_us + plan.step_us, boundary_us - span.enters_us + plan.step_us)
        for span in plan.spans
    ]
    columns: list[pa.Array] = []
    for bound in plan.of.accumulations:
        state = bound.state_of(slices.state)
        totals = [running_total(field, column) for field, column in zip(bound.fields, state, strict=True)]
        for first, last in ranges:
            try:
                if all(total is not None for total in totals):
                    own = [total.between(first, last) for total in totals if total is not None]
                else:
                    own = _combined(bound, state, first, last)
                columns.append(bound.accumulation.extract_columns(own, bound.types))
            except (UserFunctionError, NumericOverflowError) as error:
                raise _naming(error, keys, code, boundary_us) from cause(error)
    table = pa.table(
        [cast(column, field.type) for column, field in zip(columns, plan.value_schema, strict=True)],
        schema=plan.value_schema,
    )
    return Values(table, some)


def _combined(bound: BoundAccumulation, state: Sequence[pa.Array], first: Ints, last: Ints) -> list[pa.Array]:
    """The accumulators of ranges, each combined in order."""
    parts: list[list[pa.Array]] = []
    for begin, end in _chunks(last - first):
        sizes, start = (last - first)[begin:end], first[begin:end]
        entry = np.repeat(start - np.append(0, np.cumsum(sizes)[:-1]), sizes) + np.arange(int(sizes.sum()))
        groups = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
        at = pa.array(entry)
        try:
            parts.append(bound.accumulation.combine(groups, [column.take(at) for column in state]))
        except (UserFunctionError, NumericOverflowError) as error:
            error.group = None if error.group is None else error.group + begin
            raise
    return [pa.concat_arrays(columns) for columns in zip(*parts, strict=True)] if len(parts) > 1 else parts[0]


def _chunks(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of these sizes in parts of about equal work."""
    part = np.cumsum(sizes) // _AT_ONCE
    starts = np.flatnonzero(np.diff(part, prepend=-1)) if len(part) else np.zeros(1, np.int64)
    yield from zip(starts.tolist(), [*starts[1:].tolist(), len(sizes)], strict=True)


@attrs.frozen(eq=False)
class RunningTotal:
    """The running totals of a state column that is summed.

    Attributes:
        field: the column.
        total: int64[n + 1], the sum of all entries before each.
        present: int64[n + 1], the number of values before each; None: without nulls.
    """

    field: Field
    total: Ints
    present: Ints | None

    def between(self, first: Ints, last: Ints) -> pa.Array:
        """The sums of ranges."""
        sums = self.total[last] - self.total[first]
        if self.field.initial is not None:
            return column_of(sums.astype(_dtype(self.field)), self.field.type)
        seen = last > first if self.present is None else self.present[last] > self.present[first]
        return column_of(sums.astype(_dtype(self.field)), self.field.type, seen)


def running_total(field: Field, column: pa.Array) -> RunningTotal | None:
    """The running totals of a state column; None: it is not summed, or no sum of it is sure to be exact."""
    if field.merger != "sum" or not (pa.types.is_int64(field.type) or pa.types.is_float64(field.type)):
        return None
    present = valid(column)
    values = numbers(column)
    if present is not None:
        values = np.where(present, values, 0)
    if pa.types.is_float64(field.type):
        with np.errstate(invalid="ignore"):  # infinity and NaN
            whole = values.astype(np.int64)
        if not (whole == values).all():
            return None
        values, most = whole, _EXACT
    else:
        most = 2**63 - 1
    if len(values) and max(int(values.max()), -int(values.min())) * len(values) >= most:
        return None
    counts = None if present is None else np.append(0, np.cumsum(present, dtype=np.int64))
    return RunningTotal(field, np.append(0, np.cumsum(values, dtype=np.int64)), counts)


def _dtype(field: Field) -> type:
    return np.float64 if pa.types.is_float64(field.type) else np.int64


def _naming(
    error: UserFunctionError | NumericOverflowError, keys: pa.Table, code: Ints, boundary_us: Ints
) -> Exception:
    """An error with the key and the boundary that it is of."""
    if error.group is None:
        return error
    names = [name.removeprefix("key.") for name in keys.schema.names if name != "key"]
    key = dict(zip(names, keys.slice(int(code[error.group]), 1).to_pylist()[0].values(), strict=False))
    where = f"key {shown(key)}, at {instant_in_words(int(boundary_us[error.group]))}"
    named = type(error)(f"{where}: {error}")
    named.raised = error.raised and f"{where}: {error.raised}"
    return named
