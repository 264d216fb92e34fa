"""What leaves: slots that are due, as updates in order (docs/semantics.md#suppress-due)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.engine.pane_columns import RETRACTION_KIND, Block, make_block
from beamish.engine.suppress.held_table import PANE_COLUMNS, TAKEN_COLUMNS, WINDOW_COLUMNS, HeldTable
from beamish.engine.updates import Updates
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.buffers import plain
from beamish.kernels.order import sort_keys, sort_order


def in_order(held: HeldTable, at: Ints, due_us: Ints) -> Ints:
    """Slots by due time, then key in Spark's sort order, then (end, start); without a window first.

    Args:
        held: the held table.
        at: int64[n], the slots.
        due_us: int64[n], when each is due.

    Returns:
        int64[n], places in ``at``.
    """
    keys = held.keys.take(held["key_at"][at])
    by_key = [key for column in keys.columns for key in sort_keys(plain(column.combine_chunks()))]
    has_window = ~held["windowless"][at]
    return sort_order([due_us, *by_key, has_window, held["end_us"][at], held["start_us"][at]])


def net_changes(held: HeldTable, at: Ints, *, without_deletions: bool) -> Updates:
    """What slots take back and bring, slot by slot: retractions of windows merged away, its own, its pane.

    Args:
        held: the held table.
        at: int64, the slots, in order.
        without_deletions: whether a deletion is nothing, since it is final.
    """
    place = np.full(len(held), -1, dtype=np.int64)
    place[at] = np.arange(len(at))
    taken = np.flatnonzero(place[held.taken["owner"]] >= 0)
    brings = held["has_pane"][at]
    if without_deletions:
        brings &= held["kind"][at] != RETRACTION_KIND
    panes = at[brings]
    retractions = _taken_block(held, taken)
    block = make_block(len(panes), **{name: held[name][panes] for name in WINDOW_COLUMNS})
    block |= {name: held[name][panes] for name in PANE_COLUMNS}
    columns = {name: np.concatenate([retractions[name], block[name]]) for name in block}
    owner = np.concatenate([held.taken["owner"][taken], panes])
    order = np.lexsort(
        (
            columns["start_us"],
            columns["end_us"],
            np.concatenate([_is_own(held, taken), np.full(len(panes), 2)]),
            place[owner],
        )
    )
    values_at = np.concatenate([held.taken["values_at"][taken], held["values_at"][panes]])[order]
    keys = held.keys.take(held["key_at"][owner[order]])
    return Updates(
        {name: column[order] for name, column in columns.items()}, keys, held.values.take(values_at), pa.table({})
    )


def _taken_block(held: HeldTable, taken: Ints) -> Block:
    own = {name: held.taken[name][taken] for name in TAKEN_COLUMNS}
    return make_block(len(taken), **own) | {"kind": np.full(len(taken), RETRACTION_KIND, dtype=np.int8)}


def _is_own(held: HeldTable, taken: Ints) -> Flags:
    """Whether a retraction is of its slot's own window, and not of one merged away."""
    owner = held.taken["owner"][taken]
    same_start = held.taken["start_us"][taken] == held["start_us"][owner]
    own: Flags = same_start & (held.taken["end_us"][taken] == held["end_us"][owner])
    return own
