"""Applying updates to the buffer (docs/rules/suppress.md#suppress-held), and changes, of which the newest of each slot counts (#changes).

A slot has the newest pane, and the retractions of panes emitted earlier. A pane replaces the slot's pane; a retraction removes
it, or is stored if there is none. In a run of updates of a slot only the first and the last matter, since a stage retracts only
live panes; so there is no loop over updates.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.contract.keys import keyed_windows
from beamish.contract.slots import Slots
from beamish.contract.updates import MERGED_KIND, PANE_KIND, RETRACTION_KIND, Block, Updates
from beamish.kernels.buffers import NO_ENTRY, Ints
from beamish.kernels.groups import Groups
from beamish.kernels.order import sort_order
from beamish.kinds.suppress.buffer import PANE_COLUMNS, WINDOW_COLUMNS, HeldTable
from beamish.triggers.trigger import NEVER_US


def take_up(held: HeldTable, slots: Slots, updates: Updates, key_at: Ints, clock_us: int) -> None:
    """Apply updates in order.

    Args:
        held: the held table, with the slots of all updates and merged windows.
        slots: of the operator.
        updates: of a step.
        key_at: int64, one per update: the position of its key in the table's pool.
        clock_us: the processing-time clock of the step, microseconds.
    """
    kind = updates.columns["kind"]
    values_at = held.values.append(updates.values)
    merges = kind == MERGED_KIND
    edges = np.flatnonzero(np.diff(merges)) + 1
    for entries in np.split(np.arange(len(kind)), edges):
        columns = {name: column[entries] for name, column in updates.columns.items()}
        keys = updates.keys.take(pa.array(entries)) if len(edges) else updates.keys
        if merges[entries[0]]:
            _merge(held, slots, columns, keys, key_at[entries], clock_us=clock_us)
        else:
            slot = held.find(keys, key_at[entries], columns)
            _take(held, slots, columns, slot, values_at[entries], clock_us=clock_us)


def _take(held: HeldTable, slots: Slots, columns: Block, slot: Ints, values_at: Ints, *, clock_us: int) -> None:
    """Apply panes and retractions; ``slot`` and ``values_at`` are int64, one per update."""
    at, of = np.unique(slot, return_inverse=True)
    groups = Groups(of, len(at))
    sets = columns["kind"] == PANE_KIND
    first, last = groups.first(), np.empty(len(at), dtype=np.int64)
    last[of] = np.arange(len(of))
    kept = ~sets[first] & ~held["has_pane"][at]
    taken = first[kept]
    own = {name: column[taken] for name, column in columns.items()}
    held.taken.add({**own, "owner": at[kept], "values_at": values_at[taken]})
    first_pane = groups[sets].first()
    new = (held["since_us"][at] == NEVER_US) & (first_pane >= 0)
    held["since_us"][at[new]] = columns["pane_time_us"][sets][first_pane[new]]
    held["since_clock_us"][at] = np.minimum(held["since_clock_us"][at], clock_us)
    brings = sets[last]
    held["has_pane"][at] = brings
    at, last = at[brings], last[brings]
    for name in PANE_COLUMNS:
        held[name][at] = columns[name][last]
    if slots.adds_up:
        _add_parts(held, slots, slot[sets], values_at[sets])
        held["has_parts"][slot[sets & columns["has_rows"]]] = True
    else:
        held["values_at"][at] = values_at[last]
    held["touched"][slot] = True


def _add_parts(held: HeldTable, slots: Slots, slot: Ints, values_at: Ints) -> None:
    """Add accumulators to those of slots; ``slot`` and ``values_at`` are int64, one per accumulator."""
    at, of = np.unique(slot, return_inverse=True)
    had = np.flatnonzero(held["values_at"][at] != NO_ENTRY)
    all_values = held.values.take(np.concatenate([held["values_at"][at[had]], values_at]))
    groups = Groups(np.concatenate([had, of]), len(at))
    held["values_at"][at] = held.values.append(slots.combine(all_values, groups))


def _merge(held: HeldTable, slots: Slots, columns: Block, keys: pa.Table, key_at: Ints, *, clock_us: int) -> None:
    """Merge windows: the buffered updates of the parts pass to the result (docs/rules/suppress.md#suppress-merging)."""
    known = len(held)
    gone = held.find(keys, key_at, columns)
    was_there = gone < known
    held["gone"][gone[~was_there]] = True
    if not was_there.any():
        return
    gone = gone[was_there]
    into = {"start_us": columns["into_start_us"], "end_us": columns["into_end_us"], "windowless": columns["windowless"]}
    into = {name: column[was_there] for name, column in into.items()}
    if keys.num_columns:  # a table without columns has no rows to filter
        keys = keys.filter(pa.array(was_there))
    heir = held.find(keys, key_at[was_there], into)
    held.taken.pass_on(gone, heir, len(held))
    before = held["held_before"][gone]
    for name in ("since_us", "since_clock_us"):
        since = np.where(held["held_before"], held[name], NEVER_US)
        np.minimum.at(since, heir[before], held[name][gone[before]])
        inherits = heir[before]
        held[name][inherits] = since[inherits]
    held["held_before"][heir[before]] = True
    parts = held["has_parts"][gone]
    if parts.any():
        _add_parts(held, slots, heir[parts], held["values_at"][gone[parts]])
        held["has_parts"][heir[parts]] = True
    held["since_clock_us"][heir] = np.minimum(held["since_clock_us"][heir], clock_us)
    for name in ("has_pane", "has_parts", "held_before"):
        held[name][gone] = False
    held["since_us"][gone] = held["since_clock_us"][gone] = NEVER_US
    held["values_at"][gone] = NO_ENTRY
    held["touched"][gone] = held["touched"][heir] = True


def take_newest(held: HeldTable, slots: Slots, updates: Updates, clock_us: int) -> None:
    """Apply changes: the newest per slot, and since when it is buffered.

    Args:
        held: the held table; slots that are not in it count as new.
        slots: of the operator.
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
    before, after = slots.newest_keys(all_panes["pane_time_us"], deletes, values)
    order = sort_order([*before, later, *after])
    newest = np.full(len(held), -1, dtype=np.int64)
    newest[all_slots[order]] = order
    at = np.flatnonzero(newest >= 0)
    for name, column in all_panes.items():
        held[name][at] = column[newest[at]]
    held["values_at"][at] = all_values_at[newest[at]]
    held["has_pane"][at] = True
    held["touched"][at] = True


def merge_slots(held: HeldTable, slots: Slots, older: Ints) -> None:
    """Merge slots read from a segment with the more recent versions of the same slots.

    Args:
        held: the held table.
        slots: of the operator.
        older: int64, the slots read.
    """
    kept = np.flatnonzero(~held["gone"])
    bounds = {name: held[name][kept] for name in WINDOW_COLUMNS}
    groups = keyed_windows(held.keys.take(held["key_at"][kept]).columns, **bounds).groups()
    is_older = np.zeros(len(held), dtype=bool)
    is_older[older] = True
    of_group = {flag: np.full(groups.count, -1, dtype=np.int64) for flag in (True, False)}
    for flag, at in of_group.items():
        mine = is_older[kept] == flag
        at[groups.of[mine]] = kept[mine]
    twice = (of_group[True] >= 0) & (of_group[False] >= 0)
    old, new = of_group[True][twice], of_group[False][twice]
    if not len(old):
        return
    both = np.concatenate([old, new])
    values = held.values.take(held["values_at"][both])
    deletes = held["kind"][both] == RETRACTION_KIND
    before, after = slots.newest_keys(held["pane_time_us"][both], deletes, values)
    later = np.repeat(np.arange(2, dtype=np.int64), len(old))
    order = sort_order([*before, later, *after])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    wins = rank[len(old) :] > rank[: len(old)]
    for name in (*PANE_COLUMNS, "values_at"):
        held[name][old[wins]] = held[name][new[wins]]
    held["touched"][old[wins]] = True
    held["gone"][new] = held["touched"][new] = True
