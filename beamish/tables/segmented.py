"""A table in segments, in one step of a shard: what of it is in memory, what the step changes, and writing that back.

Of rows in memory three columns say where they lie: ``segment``, int64, that which they were read from, NO_VALUE: none; ``touched``, bool: they
differ from what is stored; ``gone``, bool: they are there no more, and are not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Generic, Protocol, TypeVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.arrays import NO_VALUE, Flags, Ints
from beamish.tables.segment_store import SegmentStore
from beamish.tables.stored_tables import naming_entry


class Rows(Protocol):
    """Rows in memory."""

    def __len__(self) -> int: ...
    def __getitem__(self, column: str, /) -> NDArray[Any]: ...
    def read(self, stored: pa.Table, segment: Ints) -> Ints:
        """Append stored rows, of these segments; gives their indices."""
        ...

    def read_beside(self, stored: pa.Table, at: Ints) -> None:
        """Append what belongs to the rows ``at`` of a segment."""
        ...

    def stored(self, at: Ints) -> pa.Table:
        """Rows as they are stored."""
        ...

    def cut(self, at: Ints, first: Ints) -> Iterable[pa.Table]:
        """Rows in order of their segments as they are stored, a table per segment; ``first``: where each begins."""
        return map(self.stored, np.split(at, first[1:]))

    def beside(self, at: Ints) -> pa.Table | None:
        """What belongs to rows of a segment as it is stored; None: nothing does."""
        ...


R = TypeVar("R", bound=Rows)


@attrs.frozen(eq=False)
class Runs:
    """Rows in order of their segments.

    Attributes:
        first: int64, one per segment: where its rows begin.
    """

    first: Ints

    def least(self, values: Ints) -> Ints:
        """The least value of each segment, of one per row."""
        return np.minimum.reduceat(values, self.first)

    def greatest(self, values: Ints) -> Ints:
        """The greatest."""
        return np.maximum.reduceat(values, self.first)

    def total(self, values: Ints) -> Ints:
        """Their sum."""
        return np.add.reduceat(values, self.first)


class Segmented(Generic[R]):
    """A table in segments.

    Args:
        segments: what is stored.
        rows: none of its rows.

    Attributes:
        segments: what is stored.
        rows: those that are in memory.
        read: the numbers of the segments that these were read from.
    """

    def __init__(self, segments: SegmentStore, rows: R) -> None:
        self.segments, self.rows, self.read = segments, rows, set[int]()

    def load(self, numbers: Iterable[int]) -> None:
        """Read segments; those that are in memory or not stored are skipped."""
        wanted = [number for number in self.segments.known(dict.fromkeys(numbers)) if number not in self.read]
        self.read.update(wanted)
        stored = [(number, self.segments.read(number)) for number in wanted]
        for _, alike in groupby(stored, key=lambda one: one[1].schema):  # an older one may lack columns
            self._take_in(list(alike))

    def _take_in(self, stored: Sequence[tuple[int, pa.Table]]) -> None:
        """Take segments of one schema in at once: that costs much the same for one and for many."""
        numbers, sizes = [number for number, _ in stored], [rows.num_rows for _, rows in stored]
        layout = self.segments.layout
        with naming_entry(layout.entry(numbers[0])):
            rows = pa.concat_tables([rows for _, rows in stored])
            at = self.rows.read(rows, np.repeat(np.array(numbers), sizes))
        if layout.beside is None:
            return
        for number, own in zip(numbers, np.split(at, np.cumsum(sizes)[:-1]), strict=True):
            beside = self.segments.read_beside(number)
            if beside is not None:
                with naming_entry(layout.entry(number, layout.beside[0])):
                    self.rows.read_beside(beside, own)

    def load_where(self, wanted: Flags) -> None:
        """Read segments, of flags for the entries of the index."""
        self.load(self.segments.numbers(wanted))

    def load_all(self) -> None:
        """Read all segments."""
        self.load(self.segments.index["segment"].tolist())

    def rewrite(self, numbers: Iterable[int]) -> None:
        """Have segments written anew though nothing in them changed."""
        numbers = list(numbers)
        self.load(numbers)
        self.rows["touched"][np.isin(self.rows["segment"], numbers)] = True

    def drop(self, dropped: Flags) -> None:
        """Remove segments without reading them, of flags for the entries of the index."""
        if dropped.any():
            self.rows["gone"][np.isin(self.rows["segment"], self.segments.numbers(dropped))] = True
            self.segments.remove(dropped)

    def write(
        self,
        target: Callable[[], Ints],
        entries: Callable[[Ints, Runs], Mapping[str, Ints]],
        kept: Callable[[], Flags] | None = None,
    ) -> None:
        """Write the segments in which something is another than it was; the index is to be saved.

        Args:
            target: gives the segment that each row in memory belongs to.
            entries: the further columns of the index for rows in order of their segments, their indices.
            kept: gives whether each row in memory is kept, if it is written.
        """
        rows = self.rows
        if not rows["touched"].any():
            return
        of, dirty = self._targets(target)
        self.load(dirty.tolist())
        of = np.concatenate([of, rows["segment"][len(of) :]])
        stays = ~rows["gone"] if kept is None else ~rows["gone"] & kept()
        at = np.flatnonzero(stays & np.isin(of, dirty))
        at = at[np.argsort(of[at], kind="stable")]
        numbers, first = np.unique(of[at], return_index=True)
        self.segments.remove(np.isin(self.segments.index["segment"], np.setdiff1d(dirty, numbers)))
        if len(at):
            new = {"segment": numbers, self.segments.layout.rows: np.diff(first, append=len(at))}
            self.segments.list_anew(numbers, {**new, **entries(at, Runs(first))}, self._put(numbers, first, at))

    def _targets(self, target: Callable[[], Ints]) -> tuple[Ints, Ints]:
        """Where each row in memory is to lie, and the numbers of the segments that are to be written."""
        segment, touched = self.rows["segment"], self.rows["touched"]
        left = np.unique(segment[touched])
        moves = touched | np.isin(segment, left)
        of = np.where(moves, target(), segment)
        dirty = np.unique(np.concatenate([left, of[moves & ~self.rows["gone"]]]))
        return of, dirty[dirty != NO_VALUE]

    def _put(self, numbers: Ints, first: Ints, at: Ints) -> list[bool]:
        """Write rows in order of their segments; gives of which something belongs to rows."""
        found = []
        for number, own, stored in zip(
            numbers.tolist(), np.split(at, first[1:]), self.rows.cut(at, first), strict=True
        ):
            beside = self.rows.beside(own)
            self.segments.put(number, stored, beside)
            found.append(beside is not None)
        return found
