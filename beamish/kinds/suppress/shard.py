"""A suppress in a shard: the updates of a step into the buffer, and those that are due out of it (docs/rules/suppress.md#suppress).

Slots are segmented like windows in the window table: by the end of their window, or by a hash of their key. A step reads the
segments of the slots that it touches, those with due slots, and, when the buffer is full, the oldest ones.

``NewestShard``, of suppressed changes, stores recent changes apart from the rest, so that a step costs what it reads. A change does
not determine the segment of its slot. So changes are applied to a segment of their own, the *recent* slots, which every step reads. When it
reaches a share of the buffer, it is merged into the others: an existing slot keeps its segment and its since, new ones become new segments,
oldest first. A segment with due slots is merged with the recent ones before these are emitted.

A recent slot may also be in an older segment, with an earlier since; it is then due no earlier than there, except for
out-of-order event times. So before a recent slot is emitted by event time, all recent ones are merged into the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.keys import shard_of
from beamish.contract.operator import ChainedShard, Shard
from beamish.contract.stored import Store, schema_texts
from beamish.contract.updates import DROPPED_KIND, MERGED_KIND, Updates
from beamish.kernels.buffers import Ints
from beamish.kinds.suppress.buffer import HeldTable, ends, entries, held_store, write_slots
from beamish.kinds.suppress.emission import Due, evicted, full, in_order, is_full, net_changes
from beamish.kinds.suppress.option import Suppress, UntilTimeLimit, UntilWindowCloses
from beamish.kinds.suppress.slots import merge_slots, take_newest, take_up
from beamish.modes import WhenFull
from beamish.tables.entries import PendingStore
from beamish.tables.notes import check_held
from beamish.tables.segment_policy import SegmentPolicy, segment_numbers
from beamish.tables.segments import Segmented


class SuppressShard(ChainedShard):
    """The buffer of a shard (see ``contract/chain.py``).

    Args:
        before: the shard of the suppressed operator.
        suppress: the option.
        store: the shard's.
        policy: how slots are partitioned into segments.

    Raises:
        StateError: another suppress has buffered updates.
    """

    def __init__(self, before: Shard, suppress: Suppress, store: Store, policy: SegmentPolicy) -> None:
        self._before, self._operator, self._suppress, self._policy = before, before.operator, suppress, policy
        check_held(before.held, suppress.name)
        self._pending = PendingStore(store)  # segments are rewritten while updates are applied
        self._store = held_store(self._pending, suppress.name)
        self._store.about["takes"] = schema_texts(self._operator.takes)
        self._of = self._operator.slots
        self._due = Due(suppress, self._of, before.clocks)

    def take(self, updates: Sequence[Updates]) -> Sequence[Updates]:
        if self._passes:
            self._held = held = self._new_table()
            return [*self._leave(held), *_unchanged(updates)]
        dropped, kept = _apart(updates)
        self._held = held = self._hold(kept)
        return [*dropped, *self._leave(held), *self._evict(held)]

    def save(self) -> None:
        self._save(self._held)
        self._pending.flush()
        self._before.held = {"name": self._suppress.name, "updates": self._store.rows}

    @property
    def _passes(self) -> bool:
        """Whether the wait is 0; updates buffered in an earlier run are emitted, except for parts that wait for a pane."""
        return not self._suppress.holds and not (self._of.adds_up and self._store.rows)

    def _new_table(self) -> HeldTable:
        self._stored = Segmented(self._store, HeldTable(self._of.keys, self._of.values))
        return self._stored.rows

    def _hold(self, parts: Sequence[Updates]) -> HeldTable:
        """Apply updates; returns the slots that were read or created for it."""
        held = self._new_table()
        for updates in parts:
            key_at = held.keys.append(updates.keys)
            self._read_touched(held, updates, key_at)
            take_up(held, self._of, updates, key_at, self._before.clocks.clock_us)
        held.settle(self._before.clocks.watermark_us)
        return held

    def _read_due(self, held: HeldTable) -> None:
        """Load the segments with due slots; all of them if the index was written for another wait."""
        about, waits = self._store.about, self._due.waits_for_pane
        if about.setdefault("waits_for_pane", waits) != waits:
            about["waits_for_pane"] = waits
            self._touch_all(held)
        self._read(held, self._store.numbers(self._due.segments(self._store)))

    def _read(self, held: HeldTable, numbers: Iterable[int]) -> None:
        """Load segments; those already loaded are skipped."""
        self._stored.load(numbers)

    def _read_touched(self, held: HeldTable, updates: Updates, key_at: Ints) -> None:
        """Load the segments of the slots of updates, and of the windows that they merge into."""
        columns = updates.columns
        if not self._store.rows:
            return
        numbers = segment_numbers(self._span_us, ends(columns), held.keys, key_at)
        merged = columns["kind"] == MERGED_KIND
        into = segment_numbers(self._span_us, columns["into_end_us"][merged], held.keys, key_at[merged])
        self._read(held, np.unique(np.concatenate([numbers, into])).tolist())

    def _leave(self, held: HeldTable) -> list[Updates]:
        """Emit due slots."""
        self._read_due(held)
        at = self._due.slots(held)
        if not len(at):
            return []
        return [self._out(held, at[in_order(held, at, self._due.due_us(held)[at])])]

    def _out(self, held: HeldTable, at: Ints) -> Updates:
        """Emit slots, in this order."""
        final = isinstance(self._suppress.until, UntilWindowCloses)
        updates = net_changes(held, self._of, at, final=final)
        held.drop(at)
        return updates

    def _evict(self, held: HeldTable) -> list[Updates]:
        """Enforce the buffer limits (BufferFullError: it is full, and nothing may be emitted early)."""
        buffer = self._suppress.buffer
        held.count_bytes(np.flatnonzero(held["touched"] & ~held["gone"]))
        if buffer.policy is WhenFull.SPILL or not self._suppress.holds:
            return []
        slots, held_bytes = self._totals(held)
        if not is_full(buffer, slots, held_bytes):
            return []
        if buffer.policy is WhenFull.SHUT_DOWN:
            raise full(self._suppress, slots, held_bytes, self._number(held))
        while True:
            at, due_us, fits = evicted(self._due, held, slots, held_bytes)
            unread = np.isin(self._store.index["segment"], held["segment"], invert=True)
            first_us = np.where(unread, self._due.first_us(self._store), np.iinfo(np.int64).max)
            if not unread.any() or (fits and bool((due_us[-1:] < first_us.min()).all())):
                return [self._out(held, at)] if len(at) else []
            self._read(held, [int(self._store.index["segment"][np.argmin(first_us)])])

    def _number(self, held: HeldTable) -> int:
        """The number of this non-empty shard."""
        if not len(held):
            self._read(held, self._store.index["segment"][:1].tolist())
        keys = held.keys.take(held["key_at"][:1])
        return shard_of(keys.select(list(self._operator.takes[0].keys)), self._operator.shards)

    def _totals(self, held: HeldTable) -> tuple[int, int]:
        """Number of buffered slots, and their bytes."""
        index, kept = self._store.index, ~held["gone"]
        rest = np.isin(index["segment"], held["segment"], invert=True)
        slots = int(index["slots"][rest].sum()) + int(kept.sum())
        return slots, int(index["bytes"][rest].sum()) + int(held["bytes"][kept].sum())

    @property
    def _span_us(self) -> int:
        """The span of window ends in a segment."""
        return int(self._store.about.setdefault("span_us", self._policy.shortest_us))

    def _save(self, held: HeldTable) -> None:
        """Write the changed segments, and the index."""
        store = self._store
        segments = len(store.index["segment"])
        span_us = self._policy.next_span_us(self._policy.shortest_us, self._span_us, segments, store.rows)
        if span_us != self._span_us:
            self._touch_all(held)
            store.about["span_us"] = span_us
        self._stored.write(
            lambda: segment_numbers(span_us, ends(held), held.keys, held["key_at"]), entries(held, self._due.may_leave)
        )
        store.save()

    def _touch_all(self, held: HeldTable) -> None:
        """Load all segments, to be rewritten."""
        self._read(held, self._store.index["segment"].tolist())
        held["touched"][:] = True

    @property
    def next_due_us(self) -> int | None:
        return self._due.next_us(self._store)


def _apart(parts: Iterable[Updates]) -> tuple[list[Updates], list[Updates]]:
    """Dropped rows, which are emitted at once, and the others; each without empty parts."""
    dropped, kept = [], []
    for part in parts:
        is_dropped = part.columns["kind"] == DROPPED_KIND
        if is_dropped.any():
            dropped.append(attrs.evolve(part.where(is_dropped), values=pa.table({})))
        if not is_dropped.all():
            kept.append(attrs.evolve(part.where(~is_dropped), dropped=None))
    return dropped, kept


def _unchanged(parts: Iterable[Updates]) -> Iterator[Updates]:
    """Updates in the stage's order, without merged windows: dropped rows in parts of their own, which have no values."""
    for part in parts:
        kept = part.where(part.columns["kind"] != MERGED_KIND)
        run = np.cumsum(np.diff(kept.columns["kind"] == DROPPED_KIND, prepend=False))
        for number in np.unique(run):
            dropped, others = _apart([kept.where(run == number)])
            yield from (*dropped, *others)


RECENT = 0
"""The segment number of the recent slots."""
_SHARE, _FEWEST, _LARGEST, _SMALL = 8, 1_000, 10_000, 4
"""Recent slots are merged when there are more than the minimum, and more than a share of all; maximum number of slots of a segment, and which part of that makes a small one."""


class NewestShard(SuppressShard):
    """The buffer of changes, of which the newest count."""

    def _hold(self, parts: Sequence[Updates]) -> HeldTable:
        held = self._new_table()
        self._read(held, [RECENT])
        for updates in parts:
            take_newest(held, self._of, updates, self._before.clocks.clock_us)
        return self._taken_in(held) if self._takes_in(held) else held

    def _takes_in(self, held: HeldTable) -> bool:
        """Whether recent slots are to be merged into the other segments."""
        index, until, buffer = self._store.index, self._suppress.until, self._suppress.buffer
        if buffer.policy is not WhenFull.SPILL:  # all are needed for the count
            return True
        if buffer.is_limited:
            held.count_bytes(np.flatnonzero(held["touched"]))
            if is_full(buffer, len(held), int(held["bytes"].sum())):
                return True
        others = index["segment"] != RECENT
        if len(held) > max(_FEWEST, int(index["slots"][others].sum()) // _SHARE):
            return True
        by_event_time = isinstance(until, UntilTimeLimit) and not until.by_clock
        return by_event_time and bool(others.any()) and bool(len(self._due.slots(held)))

    def _taken_in(self, recent: HeldTable) -> HeldTable:
        """Merge recent slots into the other segments, one by one; returns a table with nothing read.

        Small segments are rewritten with the recent slots, so that there are few.
        """
        store, recents, most = self._store, self._stored, self._most
        sizes = dict(zip(store.index["segment"].tolist(), store.index["slots"].tolist(), strict=True))
        sizes.pop(RECENT, None)
        for number, slots in sizes.items():
            if slots * _SMALL < most and int((~recent["gone"]).sum()) + slots <= most:
                known = len(recent)
                recents.load([number])
                merge_slots(recent, self._of, np.arange(known, len(recent)))
                store.remove(store.index["segment"] == number)
                continue
            held = self._new_table()
            self._stored.load([number])
            older, at = np.arange(len(held)), np.flatnonzero(~recent["gone"])
            newer = recent.copy(at, held)
            merge_slots(held, self._of, older)
            recent["gone"][at[held["gone"][newer]]] = True
            if held["touched"][older].any():
                held.count_bytes(older)
                write_slots(store, number, held, older, self._due.may_leave)
        new = np.flatnonzero(~recent["gone"])
        new = new[np.argsort(self._due.due_us(recent)[new], kind="stable")]
        recent.count_bytes(new)
        next_ = int(store.index["segment"].max(initial=RECENT)) + 1
        for place, part in enumerate(np.split(new, np.arange(most, len(new), most))):
            write_slots(store, next_ + place, recent, part, self._due.may_leave)
        store.remove(store.index["segment"] == RECENT)
        return self._new_table()

    @property
    def _most(self) -> int:
        """Maximum number of slots of a segment."""
        most = self._suppress.buffer.max_records
        return _LARGEST if most is None else max(1, min(most, _LARGEST))

    def _read(self, held: HeldTable, numbers: Iterable[int]) -> None:
        before = len(held)
        super()._read(held, numbers)
        older = np.arange(before, len(held))
        older = older[held["segment"][older] != RECENT]
        if len(older):
            merge_slots(held, self._of, older)

    def _save(self, held: HeldTable) -> None:
        self._stored.write(lambda: np.maximum(held["segment"], RECENT), entries(held, self._due.may_leave))
        self._store.save()
