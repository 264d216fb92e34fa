"""Records in segments, in one step of a shard: those that it has read, what it adds and removes, and writing that back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.buffers import cast_table
from beamish.tables.records import Records
from beamish.tables.segment_store import SegmentStore

R = TypeVar("R", bound=Records)

_NEW = 2**62
"""Stands for the segment of records that are in none."""


class Segmented(Generic[R]):
    """Records of one kind.

    Args:
        segments: what is stored.
        none: no records of this kind; what is stored may have narrower types than its cells (kernels/widening.py).

    Attributes:
        segments: what is stored.
    """

    def __init__(self, segments: SegmentStore, none: R) -> None:
        self.segments = segments
        self._none = none
        self._begin()

    def _begin(self) -> None:
        self._parts: list[R] = [self._none]
        self._segment: list[Ints] = [np.empty(0, np.int64)]
        self._alive: list[Flags] = [np.empty(0, dtype=bool)]
        self._read: set[int] = set()
        self._rewritten: set[int] = set()

    def load(self, numbers: Iterable[int]) -> None:
        """Read segments; those that are in memory or not stored are skipped."""
        for number in self.segments.known(numbers):
            if number not in self._read:
                self._read.add(number)
                self._append(self._as_wide(self._none.of_stored(self.segments.read(number))), number)

    def _as_wide(self, records: R) -> R:
        schema = self._none.cells.schema
        return (
            records
            if records.cells.schema == schema
            else attrs.evolve(records, cells=cast_table(records.cells, schema))
        )

    def load_where(self, wanted: Flags) -> None:
        """Read segments, of flags for the entries of the index."""
        self.load(self.segments.numbers(wanted))

    def load_all(self) -> R:
        """Read all segments; gives what they hold."""
        self.load(self.segments.index["segment"].tolist())
        return self.records

    def rewrite(self, numbers: Iterable[int]) -> None:
        """Have segments written anew though nothing in them changed."""
        numbers = list(numbers)
        self.load(numbers)
        self._rewritten.update(numbers)

    def drop(self, gone: Flags) -> None:
        """Remove segments without reading them, of flags for the entries of the index."""
        if not gone.any():
            return
        dead = self.segments.numbers(gone)
        self.alive[np.isin(self.segment, dead)] = False
        self._read.update(dead)
        self._rewritten.difference_update(dead)
        self.segments.remove(gone)

    def _append(self, records: R, number: int) -> None:
        if len(records):
            self._parts.append(records)
            self._segment.append(np.full(len(records), number))
            self._alive.append(np.ones(len(records), dtype=bool))

    @property
    def records(self) -> R:
        """All that are in memory, in the order in which they came there."""
        if len(self._parts) > 1:
            self._parts = [self._none.concat(self._parts)]
        return self._parts[0]

    @property
    def segment(self) -> Ints:
        """The segment that each was read from."""
        if len(self._segment) > 1:
            self._segment = [np.concatenate(self._segment)]
        return self._segment[0]

    @property
    def alive(self) -> Flags:
        """Whether each is still there; it may be written to."""
        if len(self._alive) > 1:
            self._alive = [np.concatenate(self._alive)]
        return self._alive[0]

    @property
    def is_new(self) -> Flags:
        """Whether each was added in this step."""
        new: Flags = self.segment == _NEW
        return new

    def add(self, records: R) -> None:
        """Add records."""
        self._append(records, _NEW)

    def remove(self, at: Ints) -> None:
        """Remove records, by their indices in memory."""
        self.alive[at] = False
        self._rewritten.update(set(np.unique(self.segment[at]).tolist()) - {_NEW})

    def save(
        self,
        target: Callable[[R], Ints],
        kept: Callable[[R], Flags],
        entry: Callable[[R], Mapping[str, int]],
    ) -> None:
        """Write the segments in which something is another than it was, and the index; nothing is in memory after it.

        Args:
            target: the segment that records belong to.
            kept: whether records are kept, of those that are written.
            entry: the further columns of the index for the records of a segment.
        """
        of = target(self.records)
        moved = (self.is_new | np.isin(self.segment, list(self._rewritten))) & self.alive
        dirty = self._rewritten | set(np.unique(of[moved]).tolist())
        before = len(of)
        self.load(sorted(dirty))
        if len(self.alive) > before:
            of = target(self.records)
        rows = np.flatnonzero(self.alive & np.isin(of, list(dirty)) & kept(self.records))
        order = rows[np.argsort(of[rows], kind="stable")]
        records, of = self.records.take(order), of[order]
        numbers, starts = np.unique(of, return_index=True)
        for number, own in zip(numbers.tolist(), np.split(np.arange(len(order)), starts[1:]), strict=False):
            segment = records.take(own)
            self.segments.write(number, segment.stored(), entry(segment))
        for number in dirty - set(numbers.tolist()):
            self.segments.write(number, pa.table({}), {})
        self.segments.save()
        self._begin()
