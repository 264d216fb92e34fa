"""The windows of rows that merge with others, such as sessions.

All windows of a bundle merge at once (docs/rules/triggers.md#merging-triggers). *Parts* are the open windows in a group, without
a row's own new window. The result of a group may be an existing window (then it stays), or a new one; its other parts are
removed. A group whose result is a closed window does not merge: its rows are dropped
(docs/rules/windows.md#meeting-a-closed-session).
"""

from __future__ import annotations

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.drops import EXPIRED, WINDOW_FINISHED
from beamish.contract.keys import KeyedWindows
from beamish.contract.updates import MERGED_KIND
from beamish.errors import UserFunctionError, cause, check_memory, describe_foreign
from beamish.kernels.buffers import NO_ENTRY, Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kernels.order import sort_order
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.window_table import TriggerMerge, naming_window
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_from_windows
from beamish.kinds.window.step.entries import Entries, known_and_own
from beamish.kinds.window.step.firing import into_windows
from beamish.kinds.window.step.step import Step
from beamish.triggers.trigger import WindowIndices
from beamish.windows.option import Bounds, WindowOption, read_window


def group_windows(option: WindowOption, windows: KeyedWindows) -> tuple[Ints, KeyedWindows]:
    """Group merging windows, all at once.

    Args:
        option: a merging window option.
        windows: n windows.

    Returns:
        group: int64[n], for each window its group, numbered by (key, start).
        result: the merged window of each group.
    """
    return _by_overlap(windows) if option.merges_by_overlap else _by_option(option, windows)


def _by_overlap(windows: KeyedWindows) -> tuple[Ints, KeyedWindows]:
    order = sort_order([windows.key, windows.start_us])
    ordered = windows.take(order)
    key, start = ordered.key, ordered.start_us
    reached = _running_maximum(np.cumsum(np.diff(key, prepend=key[:1]) != 0), ordered.end_us)
    first = np.ones(len(key), dtype=bool)
    first[1:] = (key[1:] != key[:-1]) | (start[1:] >= reached[:-1])
    group = np.empty(len(key), dtype=np.int64)
    group[order] = np.cumsum(first) - 1
    last = np.append(first[1:], True) if len(key) else first
    return group, KeyedWindows(key[first], start[first], reached[last])


def _running_maximum(run: Ints, values: Ints) -> Ints:
    """The running maximum within each run; runs are numbered from 0 on, in order."""
    if not len(values):
        return values
    least = int(values.min())
    span = int(values.max()) - least + 1
    if span * (int(run[-1]) + 1) < 2**63:
        return np.maximum.accumulate(run * span + (values - least)) - run * span + least
    # Too wide for one number: the same over the ranks of the values.
    by_value = np.argsort(values, kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[by_value] = np.arange(len(values))
    furthest: Ints = np.maximum.accumulate(run * len(values) + rank) - run * len(values)
    return values[by_value][furthest]


def _by_option(option: WindowOption, windows: KeyedWindows) -> tuple[Ints, KeyedWindows]:
    # A custom merge is called key by key.
    group = np.empty(len(windows), dtype=np.int64)
    results: list[tuple[int, int, int]] = []
    order = np.argsort(windows.key, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(windows.key[order])) + 1):
        if not len(members):
            continue
        bounds = list(zip(windows.start_us[members].tolist(), windows.end_us[members].tolist(), strict=True))
        becomes = _merge_one_key(option, bounds)
        number = {result: len(results) + i for i, result in enumerate(sorted(set(becomes.values())))}
        results.extend((int(windows.key[members[0]]), *result) for result in number)
        group[members] = [number[becomes[window]] for window in bounds]
    table = np.array(results, dtype=np.int64).reshape(-1, 3)
    return group, KeyedWindows(*(table[:, i].copy() for i in range(3)))


def _merge_one_key(option: WindowOption, bounds: list[Bounds]) -> dict[Bounds, Bounds]:
    """The merged window of each window of a key."""
    becomes = {window: window for window in bounds}
    try:
        for parts, result in option.merge(sorted(becomes)):
            becomes.update(dict.fromkeys(parts, read_window(result)))
    except Exception as error:  # noqa: BLE001 - it is raised again
        check_memory(error)
        raise UserFunctionError(
            f"{option!r}.merge({sorted(becomes)!r}) raised {describe_foreign(error)}; fix it and restart from the "
            "checkpoint; no data was lost"
        ) from cause(error)
    return becomes


@attrs.frozen
class Meeting:
    """Open windows and a bundle's own windows, in merging groups.

    Attributes:
        result: the result of each group, g of them, by (key, start).
        of_open: int64, one per open window: its group.
        of_entry: int64, one per entry: its group.
        entry: int64[g], one entry of each group; NO_ENTRY for a group without entries, which is unchanged.
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


def expired_when_merged(step: Step, bundle: Bundle, entries: Entries) -> Flags:
    """Which entries would be in an expired window after merging: bool, one per entry."""
    load_what_may_merge(step, entries)
    known, windows, own = known_and_own(step, bundle, entries)
    open_ = ~step.table["closed"][known] & np.isin(windows.key, own.key)
    return _expired(step, bundle, entries, Meeting.of(step.plan.window, windows.take(open_), own))


def _expired(step: Step, bundle: Bundle, entries: Entries, meeting: Meeting) -> Flags:
    end_us = meeting.result.end_us[meeting.of_entry]
    expired: Flags = step.plan.expiry_us(end_us) <= step.progress_of_rows(bundle, entries.row)
    return expired


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
    if step.plan.window.late_by_merged:  # what others would have merged with may have been dropped
        expired = _expired(step, bundle, entries, meeting)
        if expired.any():
            drop_from_windows(step, bundle, entries.only(expired), EXPIRED)
            entries, own = entries.only(~expired), own.take(~expired)
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
        columns.extend(bound.accumulation.combine(groups, bound.state_of(states)))
    return pa.table(columns, schema=plan.state_schema)
