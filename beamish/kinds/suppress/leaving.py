"""Emitting due slots, as updates in order (docs/rules/suppress.md#suppress-due)."""

from __future__ import annotations

import numpy as np

from beamish.contract.operator import Operator
from beamish.contract.pane_columns import RETRACTION_KIND, Block, make_block
from beamish.contract.updates import Updates
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.buffers import plain
from beamish.kernels.order import sort_keys, sort_order
from beamish.kinds.suppress.held_table import PANE_COLUMNS, TAKEN_COLUMNS, WINDOW_COLUMNS, HeldTable


def in_order(held: HeldTable, at: Ints, due_us: Ints) -> Ints:
    """Order slots by due time, then key in Spark's sort order, then (end, start); without a window first.

    Args:
        held: the held table.
        at: int64[n], the slots.
        due_us: int64[n], when each is due.

    Returns:
        int64[n], positions in ``at``.
    """
    keys = held.keys.take(held["key_at"][at])
    by_key = [key for column in keys.columns for key in sort_keys(plain(column.combine_chunks()))]
    has_window = ~held["windowless"][at]
    return sort_order([due_us, *by_key, has_window, held["end_us"][at], held["start_us"][at]])


def net_changes(held: HeldTable, operator: Operator, at: Ints, *, final: bool) -> Updates:
    """The retractions and pane of each slot: retractions of merged windows, its own retraction, its pane.

    Args:
        held: the held table.
        operator: of the stage.
        at: int64, the slots, in order.
        final: whether a slot has no further updates: then a deletion is omitted, and a pane replaces only what it retracts.
    """
    place = np.full(len(held), -1, dtype=np.int64)
    place[at] = np.arange(len(at))
    taken = np.flatnonzero(place[held.taken["owner"]] >= 0)
    brings = held["has_pane"][at]
    if final:
        brings &= held["kind"][at] != RETRACTION_KIND
    panes = at[brings]
    is_own = _is_own(held, taken)
    retractions = _taken_block(held, taken)
    block = make_block(len(panes), **{name: held[name][panes] for name in WINDOW_COLUMNS})
    block |= {name: held[name][panes] for name in PANE_COLUMNS}
    owners = held.taken["owner"][taken]
    retractions["replaces"] = is_own & np.isin(owners, panes)
    block["replaces"] = np.isin(panes, owners[is_own])
    if not final:
        block["replaces"] |= operator.replaces_unseen(block)
    columns = {name: np.concatenate([retractions[name], block[name]]) for name in block}
    owner = np.concatenate([owners, panes])
    order = np.lexsort(
        (
            columns["start_us"],
            columns["end_us"],
            np.concatenate([is_own, np.full(len(panes), 2)]),
            place[owner],
        )
    )
    values_at = np.concatenate([held.taken["values_at"][taken], held["values_at"][panes]])[order]
    keys = held.keys.take(held["key_at"][owner[order]])
    return Updates({name: column[order] for name, column in columns.items()}, keys, held.values.take(values_at))


def _taken_block(held: HeldTable, taken: Ints) -> Block:
    own = {name: held.taken[name][taken] for name in TAKEN_COLUMNS}
    return make_block(len(taken), **own) | {"kind": np.full(len(taken), RETRACTION_KIND, dtype=np.int8)}


def _is_own(held: HeldTable, taken: Ints) -> Flags:
    """Whether a retraction belongs to its slot's own window, not to one merged into it."""
    owner = held.taken["owner"][taken]
    same_start = held.taken["start_us"][taken] == held["start_us"][owner]
    own: Flags = same_start & (held.taken["end_us"][taken] == held["end_us"][owner])
    return own
