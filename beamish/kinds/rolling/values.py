"""Values over spans, for many keys and boundaries at once: read from totals, or recombined from slices.

Sums are exact (totals.py). All other accumulators of a span are combined from the key's slices, in order of time. So equal slices give equal
values, bit by bit, whatever was computed before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa

from beamish.errors import NumericOverflowError, UserFunctionError, cause, shown
from beamish.instants import instant_in_words
from beamish.kernels.buffers import Flags, Ints, cast
from beamish.kernels.groups import Groups
from beamish.kinds.rolling.plan import BoundSpan, RollingPlan
from beamish.kinds.window.plan.binding import BoundAccumulation

_AT_ONCE = 2_000_000
"""Approximate number of accumulators that are combined at once."""


@attrs.define(slots=False, eq=False)
class KeySlices:
    """Slices, ordered by key and then by start.

    Attributes:
        code: int64[n], the code of the key of each.
        start_us: int64[n], where it starts.
        rows: int64[n], its number of rows.
        state: n accumulators.
        totals: int64[n, width], its totals.
    """

    code: Ints
    start_us: Ints
    rows: Ints
    state: pa.Table
    totals: Ints

    @classmethod
    def ordered(cls, code: Ints, start_us: Ints, rows: Ints, state: pa.Table, totals: Ints) -> KeySlices:
        """Slices in any order."""
        order = np.lexsort((start_us, code))
        return cls(
            code[order], start_us[order], rows[order], state.take(pa.array(order)).combine_chunks(), totals[order]
        )

    @cached_property
    def _times(self) -> Ints:
        return np.unique(self.start_us)

    @cached_property
    def _places(self) -> Ints:
        return self.code * (len(self._times) + 1) + np.searchsorted(self._times, self.start_us)

    def before(self, code: Ints, bound_us: Ints) -> Ints:
        """For each key the place of its first slice that does not start before a time."""
        bounds = code * (len(self._times) + 1) + np.searchsorted(self._times, bound_us)
        return np.searchsorted(self._places, bounds)

    def within(self, plan: RollingPlan, span: BoundSpan, code: Ints, boundary_us: Ints) -> tuple[Ints, Ints]:
        """The range of slices in a span of each key at a boundary: its first slice, and the one after its last."""
        first, last = (boundary_us - edge + plan.step_us for edge in (span.leaves_us, span.enters_us))
        return self.before(code, first), self.before(code, last)


def totals_from_slices(plan: RollingPlan, slices: KeySlices, code: Ints, boundary_us: Ints) -> Ints:
    """The totals of keys at boundaries: int64[n, width], as differences of running totals."""
    found = np.zeros((len(code), plan.totals_width), np.int64)
    first, last = slices.within(plan, plan.present, code, boundary_us)
    counted = np.append(0, np.cumsum(plan.weights(slices.rows)))
    found[:, 0] = counted[last] - counted[first]
    if not plan.totals.width:
        return found
    running = np.concatenate([np.zeros((1, plan.totals.width), np.int64), np.cumsum(slices.totals, axis=0)])
    for span, own in zip(plan.spans, of_spans(plan, found), strict=True):
        first, last = slices.within(plan, span, code, boundary_us)
        own[:] = running[last] - running[first]
    return found


def of_spans(plan: RollingPlan, totals: Ints) -> list[Ints]:
    """The totals of each span, as views."""
    width = plan.totals.width
    return [totals[:, 1 + i * width : 1 + (i + 1) * width] for i in range(len(plan.spans))]


@attrs.frozen(eq=False)
class Values:
    """The values of keys at boundaries.

    Attributes:
        table: n rows of the plan's ``value_schema``.
        some: bool[n], whether the key is present.
    """

    table: pa.Table
    some: Flags


def values_at(  # noqa: PLR0917 - the plan, and what it is of
    plan: RollingPlan, totals: Ints, slices_of: Callable[[], KeySlices], keys: pa.Table, code: Ints, boundary_us: Ints
) -> Values:
    """The values of keys at boundaries.

    Args:
        plan: of the stage.
        totals: int64[n, width], the totals there.
        slices_of: gives all slices that may count there.
        keys: the keys, by code; for messages.
        code, boundary_us: int64[n].
    """
    columns: list[pa.Array] = []
    some = totals[:, 0] > 0
    for bound in plan.of.accumulations:
        for span, own in zip(plan.spans, of_spans(plan, totals), strict=True):
            if not plan.rolling.spans[span.name].has(bound.name):
                continue
            try:
                state = _state(plan, bound, span, own, some, slices_of, code, boundary_us)
                columns.append(bound.accumulation.extract_columns(state, bound.types))
            except (UserFunctionError, NumericOverflowError) as error:
                raise naming(error, keys, code, boundary_us) from cause(error)
    table = pa.table(
        [cast(column, field.type) for column, field in zip(columns, plan.value_schema, strict=True)],
        schema=plan.value_schema,
    )
    return Values(table, some)


def _state(  # noqa: PLR0917
    plan: RollingPlan,
    bound: BoundAccumulation,
    span: BoundSpan,
    totals: Ints,
    some: Flags,
    slices_of: Callable[[], KeySlices],
    code: Ints,
    boundary_us: Ints,
) -> list[pa.Array]:
    """The accumulators of a span."""
    state, unfit = [], np.ones(len(code), bool)
    if bound.name in plan.totals.fields:
        state, unfit = plan.totals.read(bound.name, totals), plan.totals.unfit(bound.name, totals)
    at = np.flatnonzero(unfit)
    if not len(at):
        return state
    slices = slices_of()
    first, last = slices.within(plan, span, code[at], boundary_us[at])
    last = np.where(some[at], last, first)
    combined = _combined(bound, bound.state_of(slices.state), first, last, at)
    if len(at) == len(code):
        return combined
    place = np.arange(len(code))
    place[at] = len(code) + np.arange(len(at))
    return [pa.concat_arrays(pair).take(pa.array(place)) for pair in zip(state, combined, strict=True)]


def _combined(bound: BoundAccumulation, state: Sequence[pa.Array], first: Ints, last: Ints, at: Ints) -> list[pa.Array]:
    """The accumulators of ranges, each combined in order; ``at``: the numbers of the ranges, for messages."""
    parts: list[list[pa.Array]] = []
    for begin, end in _chunks(last - first):
        sizes, start = (last - first)[begin:end], first[begin:end]
        entry = np.repeat(start - np.append(0, np.cumsum(sizes)[:-1]), sizes) + np.arange(int(sizes.sum()))
        groups, rows = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes)), pa.array(entry)
        try:
            parts.append(bound.accumulation.combine(groups, [column.take(rows) for column in state]))
        except (UserFunctionError, NumericOverflowError) as error:
            error.group = None if error.group is None else int(at[error.group + begin])
            raise
    return [pa.concat_arrays(columns) for columns in zip(*parts, strict=True)] if len(parts) > 1 else parts[0]


def _chunks(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of these sizes in parts of about equal work."""
    part = np.cumsum(sizes) // _AT_ONCE
    starts = np.flatnonzero(np.diff(part, prepend=-1)) if len(part) else np.zeros(1, np.int64)
    yield from zip(starts.tolist(), [*starts[1:].tolist(), len(sizes)], strict=True)


def naming(error: UserFunctionError | NumericOverflowError, keys: pa.Table, code: Ints, boundary_us: Ints) -> Exception:
    """An error with the key and the boundary that it is of."""
    if error.group is None:
        return error
    names = [name.removeprefix("key.") for name in keys.schema.names if name != "key"]
    key = dict(zip(names, keys.slice(int(code[error.group]), 1).to_pylist()[0].values(), strict=False))
    where = f"key {shown(key)}, at {instant_in_words(int(boundary_us[error.group]))}"
    named = type(error)(f"{where}: {error}")
    named.raised = error.raised and f"{where}: {error.raised}"
    return named
