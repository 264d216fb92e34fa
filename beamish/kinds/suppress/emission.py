"""Emitting slots: when they are due, in which order they come (docs/rules/suppress.md#suppress-due), and what a full buffer does (#suppress-limits)."""

from __future__ import annotations

import attrs
import numpy as np

from beamish.contract.clocks import Clocks
from beamish.contract.slots import Slots
from beamish.contract.updates import RETRACTION_KIND, Block, Updates, make_block
from beamish.errors import BufferFullError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints, plain
from beamish.kernels.order import sort_keys, sort_order
from beamish.kinds.suppress.buffer import PANE_COLUMNS, TAKEN_COLUMNS, WINDOW_COLUMNS, HeldTable, ends
from beamish.kinds.suppress.option import Buffer, Suppress, UntilWindowCloses
from beamish.tables.segments import SegmentStore
from beamish.triggers.trigger import NEVER_US


@attrs.frozen
class Due:
    """Due times of buffered slots.

    Attributes:
        suppress: its wait.
        of: the updates that it takes.
        clocks: as the step ends.
    """

    suppress: Suppress
    of: Slots
    clocks: Clocks

    @property
    def now_us(self) -> int:
        """The current watermark, or clock."""
        return self.clocks.clock_us if self.suppress.until.by_clock else self.clocks.watermark_us

    @property
    def _all(self) -> bool:
        """Whether everything is due: the wait is 0, or it is the end of time."""
        return not self.suppress.holds or self.clocks.watermark_us >= END_OF_TIME_US

    def may_leave(self, held: HeldTable) -> Flags:
        """Whether a slot can be emitted by itself: bool, one per slot."""
        leaves: Flags = held["has_pane"] & ~held["gone"]
        if (not self.waits_for_pane or self._all) and not self.of.adds_up:
            leaves |= held.takes_back & ~held["gone"]
        return leaves

    @property
    def waits_for_pane(self) -> bool:
        """Whether a slot with only retractions waits for a pane: not when waiting until windows close, nor at the end of time."""
        until = self.suppress.until
        return self.of.waits_for_pane and until.holds and not isinstance(until, UntilWindowCloses)

    def due_us(self, held: HeldTable) -> Ints:
        """When each slot is due, int64 microseconds."""
        closes = self.of.closes_us(ends(held))
        return self.suppress.until.due_us(held["since_us"], held["since_clock_us"], closes)

    def slots(self, held: HeldTable) -> Ints:
        """The slots that are due now, int64."""
        leaves = self.may_leave(held)
        if not self._all:
            due = self.due_us(held) <= self.now_us
            if isinstance(self.suppress.until, UntilWindowCloses):
                due |= held["is_last"] & held["has_pane"]
            leaves &= due
        return np.flatnonzero(leaves)

    def first_us(self, store: SegmentStore) -> Ints:
        """The least due time in each segment, int64 microseconds."""
        index = store.index
        closes = self.of.closes_us(np.minimum(index["end_us"], END_OF_TIME_US))
        first = self.suppress.until.due_us(index["since_us"], index["since_clock_us"], closes)
        if isinstance(self.suppress.until, UntilWindowCloses):
            first = np.where(index["lasts"] > 0, 0, first)
        return np.where(index["since_us"] == NEVER_US, NEVER_US, first)

    def segments(self, store: SegmentStore) -> Flags:
        """Which segments have due slots: bool, one per entry of the index."""
        if self._all:
            return np.ones(len(store.index["segment"]), dtype=bool)
        due: Flags = self.first_us(store) <= self.now_us
        return due

    def next_us(self, store: SegmentStore) -> int | None:
        """The least watermark at which a slot is due; None: none by the watermark."""
        if self.suppress.until.by_clock:
            return END_OF_TIME_US if store.rows else None
        first = int(self.first_us(store).min(initial=NEVER_US))
        return None if first == NEVER_US else first


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


def net_changes(held: HeldTable, of: Slots, at: Ints, *, final: bool) -> Updates:
    """The retractions and pane of each slot: retractions of merged windows, its own retraction, its pane.

    Args:
        held: the held table.
        of: the updates that it takes.
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
    retractions["windowless"] = held["windowless"][owners]
    retractions["replaces"] = is_own & np.isin(owners, panes)
    block["replaces"] = np.isin(panes, owners[is_own])
    if not final:
        block["replaces"] |= of.replaces_unseen(block)
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


def is_full(buffer: Buffer, slots: int, held_bytes: int) -> bool:
    """Whether slots or bytes exceed the limits."""
    return (buffer.max_records is not None and slots > buffer.max_records) or (
        buffer.max_bytes is not None and held_bytes > buffer.max_bytes
    )


def evicted(due: Due, held: HeldTable, slots: int, held_bytes: int) -> tuple[Ints, Ints, bool]:
    """The slots to emit early, least due first, until both limits hold.

    Args:
        due: the step's.
        held: the held table.
        slots: number of all buffered slots.
        held_bytes: their bytes.

    Returns:
        the slots, int64, in order; when each is due, int64 microseconds; and whether the rest then fits.
    """
    buffer = due.suppress.buffer
    at = np.flatnonzero(due.may_leave(held))
    due_us = due.due_us(held)[at]
    order = in_order(held, at, due_us)
    at, due_us = at[order], due_us[order]
    slots_left = slots - np.arange(len(at) + 1)
    bytes_left = held_bytes - np.concatenate([[0], np.cumsum(held["bytes"][at])])
    fits = np.ones(len(at) + 1, dtype=bool)
    if buffer.max_records is not None:
        fits &= slots_left <= buffer.max_records
    if buffer.max_bytes is not None:
        fits &= bytes_left <= buffer.max_bytes
    count = int(np.argmax(fits)) if fits.any() else len(at)
    return at[:count], due_us[:count], bool(fits.any())


def full(suppress: Suppress, slots: int, held_bytes: int, shard: int) -> BufferFullError:
    """The error of a shard that exceeds its buffer."""
    buffer = suppress.buffer
    allowed = [f"{buffer.max_records} updates"] if buffer.max_records is not None else []
    allowed += [f"{buffer.max_bytes} bytes"] if buffer.max_bytes is not None else []
    return BufferFullError(
        f"suppress {suppress.name!r}: shard {shard} would hold {slots} updates of {held_bytes} bytes, the limit is "
        f"{' and '.join(allowed)}; nothing is lost: restart from the checkpoint with a larger buffer, more shards in a new "
        "checkpoint, or when_full=bm.SPILL"
    )
