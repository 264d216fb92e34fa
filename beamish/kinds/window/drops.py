"""Dropping rows: they are counted by reason, and listed where the pipeline asks for it.

See docs/semantics.md#dropped-rows; dropped_rows.py.

A row is dropped from a window (it expired, its trigger has finished), or, once and from no window, for its event time
(it has none, or one that is out of range). The second kind is counted once per row, the first once per (row, window).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from beamish.contract.event_times import in_range
from beamish.instants import END_OF_TIME_US, NO_TIME_US
from beamish.kernels.arrays import NO_VALUE, Flags, Ints
from beamish.kinds.window.bundle import Bundle, plan_keys
from beamish.kinds.window.dropped_rows import (
    DUPLICATE,
    ERROR,
    EVENT_TIME_OUT_OF_RANGE,
    NULL_EVENT_TIME,
    REASONS,
    UNMATCHED_REMOVAL,
)
from beamish.kinds.window.entries import Entries
from beamish.kinds.window.step import Step
from beamish.pane import DropReason
from beamish.watermarks import NO_WATERMARK_US

_ONCE_PER_ROW = (DropReason.NULL_EVENT_TIME, DropReason.EVENT_TIME_OUT_OF_RANGE)


def timed_rows(bundle: Bundle) -> Flags:
    """Which of a bundle's rows have an event time that is in range: bool, one per row.

    All slices do (packing.py leaves the others out), and windows that panes bring along need no time. Nor does the global window.
    """
    if bundle.plan.preaggregates or bundle.plan.inherits_windows:
        return np.ones(len(bundle.time_us), dtype=bool)
    timed = in_range(bundle.time_us)
    return timed | (bundle.time_us == NO_TIME_US) if bundle.plan.takes_untimed_panes else timed


def drop_untimed(step: Step, bundle: Bundle, key_at: Ints, timed: Flags) -> None:
    """Drop the rows without event time, and those whose event time is out of range.

    Args:
        step: the step they came in.
        bundle: the rows.
        key_at: int64, one per row of the bundle: where its key is in the window table's pool.
        timed: bool, one per row of the bundle: whether its event time is in range.
    """
    keys = plan_keys(step.plan, bundle.untimed)
    _drop_from_no_window(step, bundle.untimed, bundle.untimed_rows, step.table.keys.append(keys), NULL_EVENT_TIME)
    _count(step, EVENT_TIME_OUT_OF_RANGE, bundle.out_of_range_rows)
    if not timed.all():
        rows = bundle.table.filter(pa.array(~timed))
        _drop_from_no_window(step, rows, int(bundle.rows[~timed].sum()), key_at[~timed], EVENT_TIME_OUT_OF_RANGE)


def drop_from_windows(step: Step, bundle: Bundle, entries: Entries, reason: int) -> None:
    """Drop entries, each from its window."""
    _drop_from_windows(step, bundle, entries, reason, None)


def _drop_from_windows(
    step: Step, bundle: Bundle, entries: Entries, reason: int, messages: Sequence[str] | None
) -> None:
    _count(step, reason, int(bundle.rows[entries.row].sum()))
    if reason not in (UNMATCHED_REMOVAL, DUPLICATE, ERROR) and not step.plan.counts_rows:
        _note_latest(step, bundle.first_us[entries.row])
    if step.plan.options.lists_dropped and len(entries.row):
        step.output.add_dropped(
            bundle.table.take(pa.array(entries.row)),
            messages,
            key_at=entries.key_at,
            start_us=entries.start_us,
            end_us=entries.end_us,
            reason=reason,
            late_by_us=_late_by(step.progress_of_rows(bundle, entries.row), bundle.place[entries.row]),
        )


def drop_error(step: Step, bundle: Bundle, entries: Entries, messages: Sequence[str]) -> None:
    """Drop entries with which something raised, each from its window, with what was raised."""
    _drop_from_windows(step, bundle, entries, ERROR, messages)


def _note_latest(step: Step, time_us: Ints) -> None:
    """Keep how far behind the watermark the earliest dropped row was (of a slice its start, if the query is not observed)."""
    if len(time_us) and step.watermark_us not in (NO_WATERMARK_US, END_OF_TIME_US):
        late_by_us = step.watermark_us - int(time_us.min())
        step.late_by_us = late_by_us if step.late_by_us is None else max(step.late_by_us, late_by_us)


def drop_rows(
    step: Step, bundle: Bundle, key_at: Ints, rows: Flags, reason: int, *, messages: Sequence[str] | None = None
) -> None:
    """Drop rows that are in no window.

    Args:
        step: the step they came in.
        bundle: the rows.
        key_at: int64, one per row of the bundle: where its key is in the window table's pool.
        rows: bool, one per row of the bundle: whether it is dropped.
        reason: why.
        messages: what was raised with each that is dropped.
    """
    if rows.any():
        _drop_from_no_window(
            step, bundle.table.filter(pa.array(rows)), int(rows.sum()), key_at[rows], reason, messages=messages
        )


def drop_from_no_window(step: Step, rows: pa.Table, reason: int, messages: Sequence[str]) -> None:
    """Drop rows that no bundle has; ``messages``: what was raised with each."""
    _drop_from_no_window(
        step, rows, rows.num_rows, step.table.keys.append(plan_keys(step.plan, rows)), reason, messages=messages
    )


def _drop_from_no_window(
    step: Step, rows: pa.Table, count: int, key_at: Ints, reason: int, *, messages: Sequence[str] | None = None
) -> None:
    _count(step, reason, count)
    if step.plan.options.lists_dropped and rows.num_rows:
        step.output.add_dropped(rows, messages, key_at=key_at, windowless=True, reason=reason)


def _late_by(progress: int | Ints, place: Ints) -> Ints:
    """The watermark less the event time in microseconds, or the reach less the number; NO_VALUE without either."""
    known = (np.asarray(progress) != NO_WATERMARK_US) & (place != NO_TIME_US)
    now = np.where(known, progress, 0)
    # What is later than 64 bits can say is so late.
    late_by = now - np.maximum(place, np.maximum(now, 0) - END_OF_TIME_US)
    return np.where(known, late_by, NO_VALUE)


def _count(step: Step, reason: int, rows: int) -> None:
    if rows:
        name = str(REASONS[reason])
        step.state.dropped[name] = step.state.dropped.get(name, 0) + rows


def dropped_of_windowings(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The counts of several windowings over the same rows as one: by (row, window), and by row where there is none.

    Each windowing counts every row that it drops for its event time; the one that was there longest counted all.
    """
    total: dict[str, int] = {}
    for count in counts:
        for reason, rows in count.items():
            so_far = total.get(reason, 0)
            total[reason] = max(so_far, rows) if reason in _ONCE_PER_ROW else so_far + rows
    return total
