"""The rows of some keys in their order: frames, functions of a row's place, and values (docs/rules/over.md#over)."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.accumulations.base.gathered import reach
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kernels.order import run_starts, sort_order, value_keys
from beamish.kinds.over.options import (
    DenseRank,
    FirstValue,
    Lag,
    LastValue,
    Lead,
    PrecedingRows,
    Rank,
    RowNumber,
    Unbounded,
)
from beamish.kinds.over.plan import BoundValue, OverPlan
from beamish.kinds.over.ranges import Ranges
from beamish.kinds.over.rows import OverRows, PastOfKeys
from beamish.tables.records import Selection

_FAR_US = 2**60


@attrs.frozen(eq=False)
class Order:
    """The order of rows.

    Attributes:
        at: int64, the rows in order.
        peers: bool, one per row in order: whether it is the first of its key, time and ``order_by``.
        equals: bool, one per row in order: whether it is the first of equal ones.
    """

    at: Ints
    peers: Flags
    equals: Flags


def order_of(plan: OverPlan, code: Ints, rows: OverRows | Selection[OverRows]) -> Order:
    """The order of rows within their keys; ``code``: int64, one per row, the number of its key.

    Most rows differ in key or time, so only those that do not are compared by their columns.
    """
    time_us = rows[OverRows.TIME]
    at = sort_order([code, time_us])
    starts = run_starts([code[at], time_us[at]])
    tied = np.flatnonzero(~(starts & np.append(starts[1:], True)))
    peers, equals = starts, starts.copy()
    if len(tied):
        run = np.cumsum(starts) - 1
        some, by = rows.take(at[tied]), plan.options.order_by
        order_by = [run[tied], *([] if by is None else value_keys([some.cells[f"own.{by}"]]))]
        own = [*order_by, *own_keys(plan, some)]
        order = sort_order([*own, (~some.is_shown).astype(np.int64), some["came"], some["late"].astype(np.int64)])
        at[tied] = at[tied][order]
        peers[tied] = run_starts([key[order] for key in order_by])
        equals[tied] = run_starts([key[order] for key in own])
    return Order(at, peers, equals)


def own_keys(plan: OverPlan, rows: OverRows) -> list[Ints]:
    """Sort keys of rows by all columns, then by window; equal rows have equal ones."""
    columns = [rows.cells[f"own.{name}"] for name in plan.takes.own_columns.names]
    return [*value_keys(columns), rows["windowless"].astype(np.int64), rows["end_us"], rows["start_us"]]


@attrs.frozen(eq=False)
class Ordered:
    """Rows in order, of several keys.

    Attributes:
        plan: of the stage.
        rows: in order.
        code: int64, one per row: the number of its key, ascending.
        peers: bool, one per row: whether it is the first of its key, time and ``order_by``.
        is_tail: bool, one per row: whether it is counted in the past of its key.
        past: of the keys; empty if the plan has none.
        past_at: int64, one per row: the index of its key's; -1: none.
    """

    plan: OverPlan
    rows: Selection[OverRows]
    code: Ints
    peers: Flags
    is_tail: Flags
    past: PastOfKeys
    past_at: Ints

    def __len__(self) -> int:
        return len(self.code)

    @property
    def time_us(self) -> Ints:
        """The times of the rows."""
        return self.rows[OverRows.TIME]

    @cached_property
    def begin(self) -> Ints:
        """The position of the first row of each row's key."""
        return self._runs[0]

    @cached_property
    def end(self) -> Ints:
        """The position after the last row of each row's key."""
        return self._runs[1]

    @cached_property
    def _runs(self) -> tuple[Ints, Ints]:
        first = np.flatnonzero(run_starts([self.code]))
        last = np.append(first[1:], len(self))[: len(first)]
        return np.repeat(first, last - first), np.repeat(last, last - first)

    @cached_property
    def begin_live(self) -> Ints:
        """The position of the first row of each row's key that its past does not count."""
        tail = np.concatenate([[0], np.cumsum(self.is_tail)])
        live: Ints = self.begin + tail[self.end] - tail[self.begin]
        return live

    def frames(self, at: Ints) -> tuple[Ints, Ints]:
        """The frames of the rows at these positions: the positions of their first rows, and of those after their last."""
        frame, time_us = self.plan.options.frame, self.time_us
        if isinstance(frame, PrecedingRows):
            return np.maximum(self.begin[at], at - frame.rows), at + 1
        span_us = 0 if isinstance(frame, Unbounded) else min(frame.span_us, _FAR_US)
        first, last = reach(self.code[at], time_us[at] - span_us, time_us[at], self.code, time_us)
        return (self.begin_live[at], last) if isinstance(frame, Unbounded) else (first, last)

    def after(self, by: int) -> Ints:
        """The position of the row that is this number of rows after each, or if negative before it; -1: none."""
        there = np.arange(len(self), dtype=np.int64) + by
        return np.where((there >= self.begin) & (there < self.end), there, -1)

    def function(self, one: BoundValue, at: Ints) -> pa.Array:
        """The values of a function for the rows at these positions."""
        of = one.of
        if isinstance(of, (Lag, Lead)):
            there = self.after(-of.reach)[at]
            values = self._picked(one, there)
            if of.default is None:
                return values
            return pc.if_else(pa.array(there < 0), pa.scalar(of.default, one.type), values)
        if isinstance(of, (FirstValue, LastValue)):
            first, last = self.frames(at)
            if isinstance(of, LastValue):
                return self._picked(one, last - 1)
            values = self._picked(one, first)
            known = self.past_at[at]
            if one not in self.plan.firsts or not (known >= 0).any():
                return values
            both = pa.concat_arrays([values, self.past.cells[f"first.{one.name}"].combine_chunks()])
            return both.take(pa.array(np.where(known >= 0, len(at) + known, np.arange(len(at)))))
        return pa.array(self._count(one)[at] + 1)

    def _picked(self, one: BoundValue, at: Ints) -> pa.Array:
        """The column of a function at positions; -1: null."""
        return one.inputs(lambda name: self.rows.pick(name, at))[0]

    def _count(self, one: BoundValue) -> Ints:
        """How many rows, or distinct times, are before each row."""
        if isinstance(one.of, DenseRank):
            dense = np.cumsum(self.peers)
            own: Ints = dense - dense[self.begin_live.clip(max=max(len(self) - 1, 0))]
            own += self._known("dense")
            return own
        own = np.arange(len(self), dtype=np.int64) - self.begin_live
        if isinstance(one.of, Rank):
            own = np.maximum.accumulate(np.where(self.peers, np.arange(len(self)), 0)) - self.begin_live
        assert isinstance(one.of, (Rank, RowNumber))  # noqa: S101 - no other counts
        own += self._known("rows")
        return own

    def _known(self, column: str) -> Ints:
        counts: Ints = np.append(self.past[column], 0)[self.past_at]
        return counts

    def ranges(self, at: Ints) -> Ranges:
        """The frames of the rows at these positions, which accumulations share."""
        return Ranges.of(*self.frames(at))

    def accumulated(self, one: BoundValue, at: Ints, ranges: Ranges) -> pa.Array:
        """The values of an accumulation for the frames of the rows at these positions."""
        sums = one in self.plan.sums and len(self.past) > 0
        before = (
            [self.past.cells[f"sum.{one.name}.{i}"].combine_chunks() for i in range(len(one.state))] if sums else None
        )

        def lift(rows: Ints) -> list[pa.Array]:
            return lifted(one, self.rows.select(rows))

        with one.placed():
            state = ranges.combine(one.of, lift, before, self.past_at[at])
            return one.of.extract_columns(state, one.types)

    def leads_to(self) -> Ints:
        """The time of the row that each row with Lead waits for: int64, microseconds; the end of time if none follows."""
        there = self.after(self.plan.options.lead)
        return np.where(there >= 0, self.time_us[there], END_OF_TIME_US)


def lifted(one: BoundValue, rows: OverRows | Selection[OverRows]) -> list[pa.Array]:
    """The accumulators of rows."""
    return one.of.lift(one.inputs(rows.cell), rows[OverRows.TIME])


def holds(rows: Ordered, flags: Flags) -> Flags:
    """Whether the frame of each row holds a row with a flag."""
    first, last = rows.frames(np.arange(len(rows)))
    counted = np.concatenate([[0], np.cumsum(flags)])
    held: Flags = counted[last] > counted[first]
    return held


def numbers_of_equals(order: Order, rows: Selection[OverRows]) -> Ints:
    """``came`` of rows in order: that of emitted rows stays, others follow the last of their equal ones."""
    shown = rows["panes"] > 0
    if order.equals.all():
        return np.where(shown, rows["came"], 0)
    run = Groups(np.cumsum(order.equals) - 1, int(order.equals.sum()))
    most = Groups(run.of, run.count).greatest(np.where(shown, rows["came"], -1))
    unshown = np.cumsum(~shown)
    first = np.maximum.accumulate(np.where(order.equals, unshown - ~shown, 0))
    return np.where(shown, rows["came"], most[run.of] + unshown - first)
