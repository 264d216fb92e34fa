"""Applying changes: the newest change of each slot is kept, whenever it arrives (docs/rules/suppress.md#changes)."""

from __future__ import annotations

import numpy as np

from beamish.contract.keyed_windows import keyed_windows
from beamish.contract.operator import Operator
from beamish.contract.pane_columns import RETRACTION_KIND
from beamish.contract.updates import Updates
from beamish.kernels.arrays import Ints
from beamish.kernels.order import sort_order
from beamish.kinds.suppress.held_table import PANE_COLUMNS, WINDOW_COLUMNS, HeldTable


def take_newest(held: HeldTable, operator: Operator, updates: Updates, clock_us: int) -> None:
    """Apply changes: the newest per slot, and since when it is buffered.

    Args:
        held: the held table; slots that are not in it count as new.
        operator: of the stage.
        updates: of a step.
        clock_us: the processing-time clock of the step, microseconds.
    """
    columns, since_us = updates.columns, updates.since_us
    assert since_us is not None  # noqa: S101 - changes say it
    known = len(held)
    slot = held.find(updates.keys, held.keys.append(updates.keys), columns)
    values_at = held.values.append(updates.values)
    new = slot >= known
    np.minimum.at(held["since_us"], slot[new], since_us[new])
    held["since_clock_us"][slot[new]] = clock_us
    # As pseudo-updates: the panes of the touched slots, then the step's changes.
    touched = np.unique(slot[~new])
    all_slots = np.concatenate([touched, slot])
    all_values_at = np.concatenate([held["values_at"][touched], values_at])
    all_panes = {name: np.concatenate([held[name][touched], columns[name]]) for name in PANE_COLUMNS}
    later = np.concatenate([np.zeros(len(touched), dtype=np.int64), np.ones(len(slot), dtype=np.int64)])
    values = held.values.take(all_values_at)
    deletes = all_panes["kind"] == RETRACTION_KIND
    before, after = operator.newest_keys(all_panes["pane_time_us"], deletes, values)
    order = sort_order([*before, later, *after])
    newest = np.full(len(held), -1, dtype=np.int64)
    newest[all_slots[order]] = order
    at = np.flatnonzero(newest >= 0)
    for name, column in all_panes.items():
        held[name][at] = column[newest[at]]
    held["values_at"][at] = all_values_at[newest[at]]
    held["has_pane"][at] = True
    held["touched"][at] = True


def unite(held: HeldTable, operator: Operator, older: Ints) -> None:
    """Merge slots read from a segment with the more recent versions of the same slots.

    Args:
        held: the held table.
        older: int64, the slots read.
    """
    kept = np.flatnonzero(~held["gone"])
    bounds = {name: held[name][kept] for name in WINDOW_COLUMNS}
    groups = keyed_windows(held.keys.take(held["key_at"][kept]).columns, **bounds).groups()
    is_older = np.zeros(len(held), dtype=bool)
    is_older[older] = True
    of_group = {flag: np.full(groups.count, -1, dtype=np.int64) for flag in (True, False)}
    for flag, slots in of_group.items():
        mine = is_older[kept] == flag
        slots[groups.of[mine]] = kept[mine]
    both = (of_group[True] >= 0) & (of_group[False] >= 0)
    old, new = of_group[True][both], of_group[False][both]
    if not len(old):
        return
    slots = np.concatenate([old, new])
    values = held.values.take(held["values_at"][slots])
    deletes = held["kind"][slots] == RETRACTION_KIND
    before, after = operator.newest_keys(held["pane_time_us"][slots], deletes, values)
    later = np.repeat(np.arange(2, dtype=np.int64), len(old))
    order = sort_order([*before, later, *after])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    wins = rank[len(old) :] > rank[: len(old)]
    for name in (*PANE_COLUMNS, "values_at"):
        held[name][old[wins]] = held[name][new[wins]]
    held["touched"][old[wins]] = True
    held["gone"][new] = held["touched"][new] = True
