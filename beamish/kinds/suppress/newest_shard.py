"""A shard of suppressed changes: recent changes are stored apart from the rest, so that a step costs what it reads.

A change does not determine the segment of its slot. So changes are applied to a segment of their own, the *recent* slots, which
every step reads. When it reaches a share of the buffer, it is merged into the others: an existing slot keeps its segment and its
since, new ones become new segments, oldest first. A segment with due slots is merged with the recent ones before these are
emitted.

A recent slot may also be in an older segment, with an earlier since; it is then due no earlier than there, except for
out-of-order event times. So before a recent slot is emitted by event time, all recent ones are merged into the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from beamish.contract.updates import Updates
from beamish.kinds.suppress.held_store import entries, write_slots
from beamish.kinds.suppress.held_table import HeldTable
from beamish.kinds.suppress.limits import is_full
from beamish.kinds.suppress.newest import take_newest, unite
from beamish.kinds.suppress.option import UntilTimeLimit
from beamish.kinds.suppress.shard import SuppressShard
from beamish.modes import WhenFull

RECENT = 0
"""The segment number of the recent slots."""
_SHARE, _FEWEST, _LARGEST, _SMALL = 8, 1_000, 10_000, 4
"""Recent slots are merged when there are more than the minimum, and more than a share of all; maximum number of slots of a segment, and which part of that makes a small one."""


class NewestShard(SuppressShard):
    """A shard of suppressed changes (see ``contract/operator.py``)."""

    def _hold(self, parts: Sequence[Updates]) -> HeldTable:
        held = self._new_table()
        self._read(held, [RECENT])
        for updates in parts:
            take_newest(held, self.operator, updates, self.clocks.clock_us)
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
                unite(recent, self.operator, np.arange(known, len(recent)))
                store.remove(store.index["segment"] == number)
                continue
            held = self._new_table()
            self._stored.load([number])
            older, at = np.arange(len(held)), np.flatnonzero(~recent["gone"])
            newer = recent.copy(at, held)
            unite(held, self.operator, older)
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
            unite(held, self.operator, older)

    def _save(self, held: HeldTable) -> None:
        self._stored.write(lambda: np.maximum(held["segment"], RECENT), entries(held, self._due.may_leave))
        self._store.save()
