"""A segmented table in one step: loading segments, tracking changed rows, writing changed segments back.

Three columns of the rows in memory track them: ``segment``, int64, the segment they were read from, NO_VALUE for new rows; ``touched``,
bool, they differ from what is stored; ``gone``, bool, they are removed.
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
from beamish.kernels.codes import factorize_values
from beamish.kernels.order import run_starts
from beamish.tables.segment_store import SegmentStore
from beamish.tables.stored_tables import naming_entry


class Rows(Protocol):
    """Rows in memory."""

    def __len__(self) -> int: ...
    def __getitem__(self, column: str, /) -> NDArray[Any]: ...
    def read(self, stored: pa.Table, segment: Ints) -> Ints:
        """Append stored rows, with the segment of each; returns their indices."""
        ...

    def read_companions(self, stored: pa.Table, at: Ints) -> None:
        """Append stored companions of ``at``, the rows of a segment."""
        ...

    def stored(self, at: Ints) -> pa.Table:
        """Rows in their stored form."""
        ...

    def cut(self, at: Ints, first: Ints) -> Iterable[pa.Table]:
        """Rows, ordered by segment, in their stored form: a table per segment; ``first``: where each begins."""
        return map(self.stored, np.split(at, first[1:]))

    def companions(self, at: Ints) -> pa.Table | None:
        """The companions of a segment's rows in their stored form; None: there are none."""
        ...


R = TypeVar("R", bound=Rows)


@attrs.frozen(eq=False)
class Runs:
    """Rows ordered by segment.

    Attributes:
        first: int64, one per segment: where its rows begin.
    """

    first: Ints

    def least(self, values: Ints) -> Ints:
        """The least value per segment, from one value per row."""
        return np.minimum.reduceat(values, self.first)

    def greatest(self, values: Ints) -> Ints:
        """The greatest value per segment."""
        return np.maximum.reduceat(values, self.first)

    def total(self, values: Ints) -> Ints:
        """The sum per segment."""
        return np.add.reduceat(values, self.first)


class Segmented(Generic[R]):
    """A segmented table.

    Args:
        rows: an empty table.

    Attributes:
        segments: the stored segments.
        rows: the rows in memory.
        read: the numbers of the loaded segments.
    """

    def __init__(self, segments: SegmentStore, rows: R) -> None:
        self.segments, self.rows, self.read = segments, rows, set[int]()

    def load(self, numbers: Iterable[int]) -> None:
        """Load segments; loaded and unknown ones are skipped."""
        wanted = [number for number in self.segments.known(dict.fromkeys(numbers)) if number not in self.read]
        self.read.update(wanted)
        stored = [(number, self.segments.read(number)) for number in wanted]
        for _, alike in groupby(stored, key=lambda one: one[1].schema):  # an older one may lack columns
            self._append(list(alike))

    def _append(self, stored: Sequence[tuple[int, pa.Table]]) -> None:
        """Append segments of one schema at once: many cost about as much as one."""
        numbers, sizes = [number for number, _ in stored], [rows.num_rows for _, rows in stored]
        layout = self.segments.layout
        with naming_entry(layout.entry(numbers[0])):
            rows = pa.concat_tables([rows for _, rows in stored])
            at = self.rows.read(rows, np.repeat(np.array(numbers), sizes))
        if layout.companion is None:
            return
        for number, own in zip(numbers, np.split(at, np.cumsum(sizes)[:-1]), strict=True):
            companions = self.segments.read_companions(number)
            if companions is not None:
                with naming_entry(layout.entry(number, layout.companion[0])):
                    self.rows.read_companions(companions, own)

    def load_where(self, wanted: Flags) -> None:
        """Load segments, by flags per index entry."""
        self.load(self.segments.numbers(wanted))

    def load_all(self) -> None:
        """Load all segments."""
        self.load(self.segments.index["segment"].tolist())

    def rewrite(self, numbers: Iterable[int]) -> None:
        """Mark segments as changed."""
        numbers = list(numbers)
        self.load(numbers)
        self.rows["touched"][np.isin(self.rows["segment"], numbers)] = True

    def drop(self, dropped: Flags) -> None:
        """Remove segments without reading them, by flags per index entry."""
        if dropped.any():
            self.rows["gone"][np.isin(self.rows["segment"], self.segments.numbers(dropped))] = True
            self.segments.remove(dropped)

    def write(
        self,
        target: Callable[[], Ints],
        entries: Callable[[Ints, Runs], Mapping[str, Ints]],
        kept: Callable[[], Flags] | None = None,
    ) -> None:
        """Write the changed segments; the index remains to be saved.

        Args:
            target: returns the segment that each row in memory belongs to.
            entries: returns the additional index columns of rows ordered by segment, given by their indices.
            kept: returns whether each row in memory is kept when it is written; None: all are.
        """
        rows = self.rows
        if not rows["touched"].any():
            return
        of, dirty = self._targets(target)
        self.load(dirty.tolist())
        of = np.concatenate([of, rows["segment"][len(of) :]])
        stays = ~rows["gone"] if kept is None else ~rows["gone"] & kept()
        at = np.flatnonzero(stays & np.isin(of, dirty))
        by = factorize_values(of[at]).of if self.segments.layout.in_row_order else of[at]
        at = at[np.argsort(by, kind="stable")]
        first = np.flatnonzero(run_starts([of[at]]))
        numbers = of[at[first]]
        self.segments.remove(np.isin(self.segments.index["segment"], np.setdiff1d(dirty, numbers)))
        if len(at):
            new = {"segment": numbers, self.segments.layout.rows: np.diff(first, append=len(at))}
            self.segments.relist(numbers, {**new, **entries(at, Runs(first))}, self._put(numbers, first, at))

    def _targets(self, target: Callable[[], Ints]) -> tuple[Ints, Ints]:
        """The new segment of each row in memory, and the numbers of the changed segments."""
        segment, touched = self.rows["segment"], self.rows["touched"]
        left = np.unique(segment[touched])
        moves = touched | np.isin(segment, left)
        of = np.where(moves, target(), segment)
        dirty = np.unique(np.concatenate([left, of[moves & ~self.rows["gone"]]]))
        return of, dirty[dirty != NO_VALUE]

    def _put(self, numbers: Ints, first: Ints, at: Ints) -> list[bool]:
        """Write rows ordered by segment; returns which segments have companions."""
        found, rows = [], np.split(at, first[1:])
        for number, own, stored in zip(numbers.tolist(), rows, self.rows.cut(at, first), strict=True):
            companions = self.rows.companions(own)
            self.segments.put(number, stored, companions)
            found.append(companions is not None)
        return found
