"""Records in the order of two hashes, that of their group and their own, in segments that are ranges of this order.

The records of a group are neighbours. So a step reads one segment for a single record, however large its group is, and a whole group in as many
segments as it fills. The index has the least ``group`` and ``place`` of each segment.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from beamish.contract.stored import Layout, Store
from beamish.kernels.buffers import Ints
from beamish.kernels.groups import Groups
from beamish.kernels.order import run_starts, sort_order
from beamish.tables.records import Columns, Records, SegmentedRecords
from beamish.tables.segments import Runs, SegmentStore

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_FEW = 8
"""So many segments need not be joined, however short they are."""


class Ranged(Records):
    """Records with these columns: the hash of their group, and their own."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {"group": ("int64", 0), "place": ("int64", 0)}


G = TypeVar("G", bound=Ranged)


def ranged_layout(name: str) -> Layout:
    """The layout of such records under a name."""
    return Layout(name, ("group", "place"))


class RangedRecords(SegmentedRecords[G], Generic[G]):
    """The records of a shard.

    Args:
        store: the shard's.
        layout: of the table.
        none: an empty table of these records.
        rows: number of records in a segment, about; does not affect the output.
    """

    def __init__(self, store: Store, layout: Layout, none: G, rows: int) -> None:
        super().__init__(SegmentStore(store, layout), none)
        self._rows = rows

    def load_places(self, group: Ints, place: Ints) -> None:
        """Load the segments of records, by their hashes."""
        self.load(np.unique(self._segments(group, place)).tolist())

    def load_groups(self, group: Ints) -> None:
        """Load all segments of groups."""
        order = self._order()
        if not len(order) or not len(group):
            return
        ends = np.zeros(len(order) + 1, np.int64)
        np.add.at(ends, self._at(group, np.full(len(group), _LEAST), order), 1)
        np.add.at(ends, self._at(group, np.full(len(group), _GREATEST), order) + 1, -1)
        self.load(self.segments.index["segment"][order[np.cumsum(ends[:-1]) > 0]].tolist())

    def _order(self) -> Ints:
        """The entries of the index, in the order of their ranges."""
        index = self.segments.index
        return sort_order([index["group"], index["place"]])

    def _at(self, group: Ints, place: Ints, order: Ints) -> Ints:
        """The range in which hashes lie, as a position in ``order``, which is not empty."""
        index, count = self.segments.index, len(order)
        both = [np.concatenate([index[name][order], own]) for name, own in (("group", group), ("place", place))]
        by = sort_order(
            [*both, (np.arange(count + len(group)) >= count).astype(np.int64)]
        )  # a range begins with its first record
        before = np.empty(len(by), np.int64)
        before[by] = np.cumsum(by < count)
        return np.maximum(before[count:] - 1, 0)

    def _segments(self, group: Ints, place: Ints) -> Ints:
        """The segment of each record; of an empty table the first."""
        order = self._order()
        if not len(order):
            return np.zeros(len(group), np.int64)
        found: Ints = self.segments.index["segment"][order[self._at(group, place, order)]]
        return found

    def save(self, watermark_us: int = 0) -> None:
        """Write the changes of the step, over more segments where they have become long."""
        if self.rows["touched"].any():
            self._join_short()
            new = self.records.take(self.is_new & self.alive)
            self.load_places(new["group"], new["place"])
        of = self._cut()
        self.write_back(lambda _: of, lambda records: np.ones(len(records), bool), _least_hashes)

    def _join_short(self) -> None:
        """Lay all records out again if segments have become short."""
        count = len(self.segments.index["segment"])
        if count > _FEW and 4 * self.segments.rows < count * self._rows:
            self.load_all()
            self.rows["touched"][:] = True
            self.segments.remove(np.ones(count, bool))

    def _cut(self) -> Ints:
        """The segment of each record in memory; those of changed segments that are too long are marked as changed."""
        records, alive = self.records, self.alive
        of = self._segments(records["group"], records["place"])
        changed = np.unique(of[self.rows["touched"]])
        at = np.flatnonzero(alive & np.isin(of, changed))
        sizes = np.bincount(np.searchsorted(changed, of[at]), minlength=len(changed))
        at = at[(sizes > 2 * self._rows)[np.searchsorted(changed, of[at])]]
        if not len(at):
            return of
        at = at[sort_order([of[at], records["group"][at], records["place"][at]])]
        whole = Groups(np.cumsum(run_starts([of[at]])) - 1, len(np.unique(of[at])))
        first = run_starts([of[at], records["group"][at], records["place"][at]])  # records of one place stay together
        position = (
            np.maximum.accumulate(np.where(first, np.arange(len(at)), 0))
            - np.flatnonzero(run_starts([of[at]]))[whole.of]
        )
        size = whole.sizes()[whole.of]
        piece = position * (size // self._rows) // size
        begins = run_starts([whole.of, piece])
        later = begins & ~run_starts([whole.of])
        numbers = np.cumsum(later) + int(max(self.segments.index["segment"].max(initial=0), of.max()))
        of[at] = np.where(piece > 0, numbers, of[at])
        self.touch(at)
        return of


def _least_hashes(columns: Columns, runs: Runs) -> dict[str, Ints]:
    """The entries of the index: the least hashes of each segment."""
    group = runs.least(columns["group"])
    own = np.repeat(group, np.diff(runs.first, append=len(columns["group"])))
    return {"group": group, "place": runs.least(np.where(columns["group"] == own, columns["place"], _GREATEST))}
