"""What a firing gives: a pane, its retraction, or nothing (RULES.md 7 to 9, 16 to 19)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.engine.windowing.error_context import naming_window
from beamish.engine.windowing.output import EARLY, LATE, ON_TIME, RETRACTION_KIND
from beamish.engine.windowing.window_table import NO_ENTRY, NO_STAMP, NOTHING_NEW_US, Indices
from beamish.kernels.buffers import plain
from beamish.kernels.order import ranks, sort_keys
from beamish.modes import ClosingBehavior, OnTimeBehavior

if TYPE_CHECKING:
    from beamish.engine.windowing.step import Step

Flags = NDArray[np.bool_]


def fire(step: Step, at: Indices, expiring: Flags) -> None:
    """Windows fire: those whose trigger is ready, and those that expire.

    Args:
        step: the step it happens in.
        at: the windows, open ones.
        expiring: for each whether it fires because it expires, whatever its trigger says.
    """
    if not len(at):
        return
    table, options = step.table, step.plan.options
    order = np.lexsort((table["start_us"][at], table["end_us"][at]))
    at, expiring = at[order], expiring[order]
    options.trigger.on_fire_columns(table.trigger, at[~expiring], step.now())
    last = expiring | table.trigger.finished[at]
    timing = _timing(step, at)
    rows = _InOrder(step, at)
    emitted = table["new_rows"][at] > 0
    if options.on_time is OnTimeBehavior.FIRE_ALWAYS:
        emitted |= timing == ON_TIME
    if options.closing is ClosingBehavior.FIRE_ALWAYS:
        emitted |= last
    if step.plan.signed:
        empty = emitted & (table["held"][at] == 0)
        _take_back(step, rows, at[empty])
        emitted &= ~empty
    _emit(step, rows, at[emitted], timing[emitted], last[emitted])
    rows.sort()
    table["new_rows"][at] = 0
    table["new_since_us"][at] = NOTHING_NEW_US
    table["stamp_us"][at] = NO_STAMP
    table["closed"][at[last]] = True
    table["touched"][at] = True
    forgets = at if options.discards else at[last]
    table["state_at"][forgets] = _new_states(step, len(forgets))
    table["live_at"][at[last]] = NO_ENTRY
    step.orphans.remove(at[last])


class _InOrder:
    """What windows give that fire, in the order of the windows, and for each in the order of the calls of ``add``."""

    def __init__(self, step: Step, at: Indices) -> None:
        self._step = step
        self._place = np.full(len(step.table), NO_ENTRY, dtype=np.int64)
        self._place[at] = np.arange(len(at))
        self._places: list[NDArray[np.int64]] = []

    def add(self, owners: Indices, **columns: Any) -> None:
        """A row for each owner, one of the windows."""
        if len(owners):
            self._step.output.add(len(owners), key_at=self._step.table["key_at"][owners], **columns)
            self._places.append(self._place[owners])

    def sort(self) -> None:
        """Put what was added in order."""
        if len(self._places) > 1:
            self._step.output.reorder_last(len(self._places), np.concatenate(self._places))


def _timing(step: Step, at: Indices) -> NDArray[np.int8]:
    table = step.table
    end = table["end_us"][at]
    # Where the watermark stood when the pane's first new row came; with no new row, before this step.
    since = np.where(table["new_rows"][at] > 0, table["new_since_us"][at], step.watermark_before_us)
    late = (table["not_early"][at] > 0) | (since >= end)
    return np.where(late, LATE, np.where(step.watermark_us < end, EARLY, ON_TIME)).astype(np.int8)


def _emit(step: Step, rows: _InOrder, at: Indices, timing: NDArray[np.int8], last: Flags) -> None:
    """Emit a pane for each window, each after the retractions of what it replaces."""
    table, options = step.table, step.plan.options
    values_at = table.live.append(_extract(step, at))
    if options.only_updated:
        changed = ~_same_values(step, table["live_at"][at], values_at) | ~table["live"][at]
        at, timing, last, values_at = at[changed], timing[changed], last[changed], values_at[changed]
    stamp = table["stamp_us"][at]
    if options.retracts:
        orphans = step.orphans.remove(at)
        order = np.lexsort((orphans["start_us"], orphans["end_us"]))
        orphans = {name: column[order] for name, column in orphans.items()}
        owners = orphans.pop("owner")
        rows.add(owners, kind=RETRACTION_KIND, **orphans)
        replaced = at[table["live"][at]]
        rows.add(replaced, kind=RETRACTION_KIND, **last_panes(step, replaced))
    index, not_early = table["panes"][at], table["not_early"][at]
    rows.add(
        at,
        start_us=table["start_us"][at],
        end_us=table["end_us"][at],
        timing=timing,
        index=index,
        on_time_index=np.where(timing == EARLY, -1, not_early),
        is_first=index == 0,
        is_last=last,
        stamp_us=stamp,
        live_at=values_at,
    )
    table["panes"][at] += 1
    table["not_early"][at] += timing != EARLY
    table["timing"][at] = timing
    table["live_stamp_us"][at] = stamp
    table["live_at"][at] = values_at
    table["live"][at] = True


def _take_back(step: Step, rows: _InOrder, at: Indices) -> None:
    """Windows of which all rows were removed give no pane; what is live of them is retracted (RULES.md 31)."""
    table = step.table
    at = at[table["live"][at]]
    if step.plan.options.retracts:
        rows.add(at, kind=RETRACTION_KIND, **last_panes(step, at))
    table["live"][at] = False
    table["live_at"][at] = NO_ENTRY


def last_panes(step: Step, at: Indices) -> dict[str, NDArray[Any]]:
    """The last panes of windows that have one, as output columns."""
    table = step.table
    timing, index = table["timing"][at], table["panes"][at] - 1
    return {
        "start_us": table["start_us"][at],
        "end_us": table["end_us"][at],
        "timing": timing,
        "index": index,
        "on_time_index": np.where(timing == EARLY, -1, table["not_early"][at] - 1),
        "is_first": index == 0,
        "stamp_us": table["live_stamp_us"][at],
        "live_at": table["live_at"][at],
    }


def _extract(step: Step, at: Indices) -> pa.Table:
    state = step.table.state.take(step.table["state_at"][at]).columns
    columns = []
    with naming_window(step.table, at):
        for bound, field in zip(step.plan.accumulations, step.plan.value_schema, strict=True):
            mine = [column.combine_chunks() for column in bound.state_of(state)]
            columns.append(bound.accumulation.extract_columns(mine, bound.types).cast(field.type))
    return pa.table(columns, schema=step.plan.value_schema)


def _same_values(step: Step, before: NDArray[np.int64], after: NDArray[np.int64]) -> Flags:
    same = np.ones(len(after), dtype=bool)
    old, new = step.table.live.take(before), step.table.live.take(after)
    for name in new.schema.names:
        same &= _equal(old[name].combine_chunks(), new[name].combine_chunks())
    return same


def _equal(a: pa.Array, b: pa.Array) -> Flags:
    """Which entries are equal; null equals null, NaN equals NaN."""
    rank = ranks(sort_keys(plain(pa.concat_arrays([a, b]))))
    equal: Flags = rank[: len(a)] == rank[len(a) :]
    return equal


def _new_states(step: Step, windows: int) -> NDArray[np.int64]:
    one = step.table.state.append(step.plan.new_state)
    return np.repeat(one, windows)
