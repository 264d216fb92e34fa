"""Merging windows: which windows of the table and of a bundle merge, and the merged contents.

All windows of a bundle merge at once (docs/rules/triggers.md#merging-triggers). *Parts* are the open windows in a group, without
a row's own new window. The result of a group may be an existing window (then it stays), or a new one; its other parts are
removed. A group whose result is a closed window does not merge: its rows are dropped
(docs/rules/windows.md#meeting-a-closed-session).
"""

from __future__ import annotations

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.drops import WINDOW_FINISHED
from beamish.contract.keyed_windows import KeyedWindows
from beamish.contract.pane_columns import MERGED_KIND
from beamish.kernels.arrays import NO_ENTRY, Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kinds.window.bundle import Bundle
from beamish.kinds.window.drops import drop_from_windows
from beamish.kinds.window.entries import Entries
from beamish.kinds.window.error_context import naming_window
from beamish.kinds.window.firing import into_windows
from beamish.kinds.window.keyed_windows import known_and_own
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.step import Step
from beamish.kinds.window.trigger_tree import TriggerMerge
from beamish.kinds.window.window_groups import group_windows
from beamish.triggers.trigger import WindowIndices
from beamish.windows.option import WindowOption


@attrs.frozen
class Meeting:
    """Open windows and a bundle's own windows, in merging groups.

    Attributes:
        result: the result of each group, g of them, by (key, start).
        of_open: int64, one per open window: its group.
        of_entry: int64, one per
        entry: its group. entry: int64[g], one entry of each group; NO_ENTRY for a group without entries, which is unchanged.
    """

    result: KeyedWindows
    of_open: Ints
    of_entry: Ints
    entry: Ints

    @classmethod
    def of(cls, option: WindowOption, open_: KeyedWindows, own: KeyedWindows) -> Meeting:
        """Group open windows and those of the entries, ``own``."""
        each = one = np.arange(len(own))
        if not option.merges_by_overlap:  # a custom merge sees each window once
            windows = own.groups()
            each, one = windows.of, windows.first()
        group, result = group_windows(option, open_ + own.take(one))
        entry = np.full(len(result), NO_ENTRY, dtype=np.int64)
        entry[group[len(open_) :]] = one
        return cls(result, group[: len(open_)], group[len(open_) :][each], entry)


def find_merging(step: Step, bundle: Bundle, entries: Entries) -> tuple[Ints, Entries]:
    """The targets of entries for merging windows; entries of closed windows are dropped.

    Returns:
        target: intp[n], indices into the window table.
        entries: the remaining ones, n.
    """
    load_what_may_merge(step, entries)
    known, windows, own = known_and_own(step, bundle, entries)
    of_bundle = np.isin(windows.key, own.key)
    known, windows = known[of_bundle], windows.take(of_bundle)
    closed = step.table["closed"][known]
    open_, open_windows = known[~closed], windows.take(~closed)
    closed_windows = windows.take(closed)
    for part in step.parts:
        kept = part.admit_beside(step, bundle, entries, own, closed=known[closed], windows=closed_windows)
        entries, own = (entries, own) if kept is None else (entries.only(kept), own.take(kept))
    meeting = Meeting.of(step.plan.window, open_windows, own)
    finished = _becomes_one_of(closed_windows, meeting)
    for part in step.parts:
        found, closed = _in_results(entries, meeting), finished[meeting.of_entry]
        kept = part.admit_to(step, bundle, found, meeting.of_entry, closed=closed, held=open_, of_held=meeting.of_open)
        if kept is not None:
            entries, own = entries.only(kept), own.take(kept)
            meeting = Meeting.of(step.plan.window, open_windows, own)
            finished = _becomes_one_of(closed_windows, meeting)
    same = meeting.result.find_in(open_windows)
    kept = ~finished[meeting.of_entry]
    drop_from_windows(step, bundle, _in_results(entries, meeting).only(~kept), WINDOW_FINISHED)
    active = (meeting.entry != NO_ENTRY) & ~finished
    target = np.full(len(same), NO_ENTRY, dtype=np.int64)
    target[same != NO_ENTRY] = open_[same[same != NO_ENTRY]]
    _append_results(step, entries, meeting, active, target)
    _merge_parts(step, open_, meeting, active, target)
    return target[meeting.of_entry][kept], entries.only(kept)


def _becomes_one_of(closed: KeyedWindows, meeting: Meeting) -> Flags:
    """Which groups would result in a closed window, and so do not merge."""
    becomes: Flags = meeting.result.find_in(closed) != NO_ENTRY
    return becomes


def load_what_may_merge(step: Step, entries: Entries) -> None:
    """Load the segments with windows that may merge with an entry's."""
    index = step.state.index
    if step.plan.window.merges_by_overlap:
        step.load(_overlap(step.state.note.span_us, entries, index["start_us"], index["end_us"]))
    else:
        step.load(np.ones(len(index["segment"]), dtype=bool))


def _overlap(rough: int, entries: Entries, start_us: Ints, end_us: Ints) -> Flags:
    """Which spans may overlap an entry's window, with its start rounded (to ``rough`` us)."""
    start = np.unique(entries.start_us // rough) * rough
    end = start + rough + int((entries.end_us - entries.start_us).max())
    before = np.searchsorted(start, end_us, side="left")
    overlaps: Flags = (before > 0) & (end[np.maximum(before, 1) - 1] > start_us)
    return overlaps


def _in_results(entries: Entries, meeting: Meeting) -> Entries:
    """The entries in the windows that their own became."""
    return entries.within(meeting.result.take(meeting.of_entry))


def _append_results(step: Step, entries: Entries, meeting: Meeting, active: Flags, target: Ints) -> None:
    """Append the missing results, and set them as the ``target`` (int64[g]) of their group."""
    made = np.flatnonzero(active & (target == NO_ENTRY))
    result = meeting.result.take(made)
    key_at = entries.key_at[meeting.entry[made]]
    target[made] = step.table.append_windows(result.start_us, result.end_us, key_at)


def _merge_parts(step: Step, open_: WindowIndices, meeting: Meeting, active: Flags, target: Ints) -> None:
    """Merge the parts of each group that has one other than its result."""
    other = open_ != target[meeting.of_open]
    merges = active & (np.bincount(meeting.of_open[other], minlength=len(active)) > 0)
    if merges.any():
        number = np.cumsum(merges) - 1
        merging = merges[meeting.of_open]
        _merge(step, TriggerMerge(open_[merging], number[meeting.of_open[merging]], target[merges]))


def _merge(step: Step, m: TriggerMerge) -> None:
    """Windows become one: their rows, clocks and triggers."""
    table, options = step.table, step.plan.options
    merged = {
        "unemitted_rows": m.sum(table["unemitted_rows"]),
        "unemitted_since_us": m.least(table["unemitted_since_us"]),
        "asks_at_end": m.any(table["asks_at_end"]) & (table["end_us"][m.into] > step.progress(m.into)),
        "state_at": table.state.append(_merged_state(step, m)),
        "touched": True,
    }
    options.trigger.on_merge_columns(table.trigger, m, step.now())
    table.trigger.finished[m.into] = False
    for name, column in merged.items():
        table[name][m.into] = column
    gone, heir = m.vanished
    table["gone"][gone] = True
    table["touched"][gone] = True
    for part in step.parts:
        part.on_merge(step, m)
    if step.plan.suppressed:
        bounds = {name: table[name][gone] for name in ("key_at", "start_us", "end_us")}
        step.output.add(len(gone), kind=MERGED_KIND, **bounds, **into_windows(table, heir))


def _merged_state(step: Step, m: TriggerMerge) -> pa.Table:
    """The accumulators of the results, one row per result."""
    parts = step.table.state.take(step.table["state_at"][m.part])
    with naming_window(step.table, m.into):
        return combine_states(step.plan, parts, m.groups)


def combine_states(plan: WindowPlan, states: pa.Table, groups: Groups) -> pa.Table:
    """Accumulators merged group by group, one row per group."""
    columns: list[pa.Array] = []
    for bound in plan.in_state:
        mine = [column.combine_chunks() for column in bound.state_of(states.columns)]
        columns.extend(bound.accumulation.combine(groups, mine))
    return pa.table(columns, schema=plan.state_schema)
