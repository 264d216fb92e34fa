"""Arriving rows: they are assigned to windows and accumulated, and the windows with new rows are evaluated.

Rows that are too late, or whose window is closed, are dropped (drops.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from beamish.contract.drops import EXPIRED
from beamish.kernels.buffers import NO_ENTRY, Flags, Ints
from beamish.kernels.codes import factorize_values
from beamish.kinds.window.plan.part import Add, Assign
from beamish.kinds.window.state.window_table import naming_window
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_from_windows
from beamish.kinds.window.step.entries import Entries, entries_of
from beamish.kinds.window.step.finding import find, load_targets
from beamish.kinds.window.step.merging import expired_when_merged, find_merging, load_what_may_merge
from beamish.kinds.window.step.step import Step
from beamish.triggers.trigger import NEVER_US, WindowIndices
from beamish.windows.within import WithinInput

_NO_WINDOWS: WindowIndices = np.empty(0, dtype=np.intp)


def add_rows(step: Step, payloads: Sequence[bytes]) -> None:
    """Add the rows of a step to their windows, and evaluate the windows with new rows."""
    bundle = Bundle.read(step.plan, payloads)
    for part in step.parts:
        part.prepare(step, bundle)
    bundle.key_at = step.table.keys.append(bundle.keys)
    placed = step.state.progress.place(step, bundle)
    came = _add_entries(step, bundle, _in_time(step, bundle, _assigned(step, bundle, placed)))
    step.state.progress.ask(step, bundle, came)
    for part in step.parts:
        part.after_rows(step, came)


def _assigned(step: Step, bundle: Bundle, windowed: Flags) -> Entries:
    """Assign each row to windows of its own, before merging."""
    assign: Assign = entries_of
    for part in step.parts:
        assign = part.assigning(assign)
    return assign(step, bundle, windowed)  # type: ignore[no-any-return]


def _in_time(step: Step, bundle: Bundle, entries: Entries) -> Entries:
    """Drop the entries whose windows have expired or were evicted, or whose rows are past retention; returns the rest."""
    expired = step.plan.expiry_us(entries.end_us) <= step.progress_of_rows(bundle, entries.row)
    if step.plan.window.late_by_merged and expired.any():
        expired = expired_when_merged(step, bundle, entries)
    if isinstance(step.plan.window, WithinInput):
        expired = step.plan.window.whole(entries.row, expired)
    drop_from_windows(step, bundle, entries.only(expired), EXPIRED)
    entries = entries.only(~expired)
    for part in step.parts:
        entries = part.admit(step, bundle, entries)
    return entries


def _add_entries(step: Step, bundle: Bundle, entries: Entries) -> WindowIndices:
    """Add entries to their windows; returns the windows."""
    add: Add = _find_and_accumulate
    for part in step.parts:
        add = part.adding(add)
    return add(step, bundle, entries)


def load_windows(step: Step, bundle: Bundle, entries: Entries) -> None:
    """Load the segments of the windows that entries may be added to."""
    if step.plan.window.merging:
        load_what_may_merge(step, entries)
    else:
        load_targets(step, bundle, entries)


def _find_and_accumulate(step: Step, bundle: Bundle, entries: Entries) -> WindowIndices:
    if not len(entries.row):
        return _NO_WINDOWS
    find_targets = find_merging if step.plan.window.merging else find
    target, entries = find_targets(step, bundle, entries)
    return _accumulate(step, bundle, entries, target) if len(target) else _NO_WINDOWS


def _accumulate_others(step: Step, bundle: Bundle, entries: Entries, target: Ints, at: Ints) -> WindowIndices:
    """Add the remaining entries, and remove windows that were created for refused ones."""
    table = step.table
    without = np.setdiff1d(at, target)
    table["gone"][without[table["state_at"][without] == NO_ENTRY]] = True
    return _accumulate(step, bundle, entries, target) if len(target) else _NO_WINDOWS


def _accumulate(step: Step, bundle: Bundle, entries: Entries, target: Ints) -> WindowIndices:
    """Add entries to the accumulators of their targets (intp, one per entry); returns the windows."""
    table = step.table
    groups = factorize_values(target)
    for part in step.parts:
        groups = part.ordered(step, groups, target)
    at = target[groups.first()]
    rows = groups.sum(bundle.rows[entries.row])
    state_at = table["state_at"][at]
    before = None
    if (state_at != NO_ENTRY).any():
        state_at = np.where(state_at == NO_ENTRY, table.state.append(step.plan.new_state), state_at)
        before = table.state.take(state_at)
    with naming_window(table, at):
        state = bundle.accumulate(entries.row, groups, before, entries.start_us)
    for part in step.parts:
        refused = part.refused(step, bundle, entries, groups, at, state=state)
        if refused is not None:
            return _accumulate_others(step, bundle, entries.only(~refused), target[~refused], at)
    step.taken += int(rows.sum())
    table["state_at"][at] = table.state.append(state)
    table["unemitted_rows"][at] += rows
    table["unemitted_since_us"][at] = np.minimum(table["unemitted_since_us"][at], step.progress(at))
    table["touched"][at] = True
    for part in step.parts:
        part.on_rows(step, bundle, entries, groups, at)
    trigger, earliest_us = step.plan.options.trigger, None
    if trigger.needs_row_times:
        earliest_us = np.full(len(table), NEVER_US)
        earliest_us[at] = groups.least(bundle.first_us[entries.row])
    trigger.on_rows_columns(table.trigger, at, rows, step.now(earliest_us))
    return at
