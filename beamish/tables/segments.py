"""Segmented tables: rows as Arrow bytes in segments with an index, of which a step loads what it needs and writes what it changed.

index       metadata as JSON, and one entry per segment
s<number>   a segment: a table
<letter><number>    companions of a segment's rows (``Layout.companion``): a table with the column ``owner``, the row's position
in the segment

columns of the index (one entry per segment, int64):
    segment, rows    its number, and its number of rows, under the layout's name
    the rest         facts for its owner, available without reading it

A segmented table in one step: loading segments, tracking changed rows, writing changed segments back.

Three columns of the rows in memory track them: ``segment``, int64, the segment they were read from, NO_VALUE for new rows; ``touched``,
bool, they differ from what is stored; ``gone``, bool, they are removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Generic, Protocol, TypeVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.stored import INDEX, Layout, Store
from beamish.kernels.buffers import NO_VALUE, Flags, Ints
from beamish.kernels.codes import factorize_values
from beamish.kernels.order import run_starts
from beamish.tables.entries import entry_bytes, naming_entry, read_entry, table_of, write_entry


class SegmentStore:
    """The segments in a store.

    Args:
        store: the shard's.
        layout: their layout.

    Attributes:
        about: metadata, as JSON.
        index: the index's columns.
        is_new: whether there was no index.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        self.store, self.layout = store, layout
        self._stored = store.get(layout.entry(INDEX))
        self.is_new = self._stored is None
        self.about: dict[str, Any] = {}
        self._set_index({column: np.empty(0, np.int64) for column in layout.index})
        if self._stored is not None:
            table = table_of(layout.entry(INDEX), self._stored)
            with naming_entry(layout.entry(INDEX)):
                self.about = layout.read(json.loads(table.schema.metadata[b"beamish"]))
                for column, value in layout.later.items():
                    if column not in table.schema.names:
                        table = table.append_column(column, pa.array(np.full(table.num_rows, value)))
                self._set_index({column: table[column].to_numpy().copy() for column in layout.index})

    def _set_index(self, index: dict[str, Ints]) -> None:
        self.index, flag = index, self.layout.companion
        self._flagged = set() if flag is None else set(self.numbers(index[flag[1]] > 0))

    @property
    def rows(self) -> int:
        """Number of rows in all segments."""
        return int(self.index[self.layout.rows].sum())

    def numbers(self, wanted: Flags) -> list[int]:
        """Segment numbers, from flags per index entry."""
        return self.index["segment"][wanted].tolist()  # type: ignore[no-any-return]

    def known(self, numbers: Iterable[int]) -> list[int]:
        """The existing ones among segment numbers."""
        stored = set(self.index["segment"].tolist())
        return [number for number in numbers if number in stored]

    def read(self, number: int) -> pa.Table:
        """The rows of a segment (StateError: it is missing or damaged)."""
        return read_entry(self.store, self.layout.entry(number))

    def read_companions(self, number: int) -> pa.Table | None:
        """The companions of a segment's rows; None: no companions (StateError: it is missing or damaged)."""
        if number not in self._flagged:
            return None
        return read_entry(self.store, self._companion_entry(number))

    def _companion_entry(self, number: int) -> str:
        assert self.layout.companion is not None  # noqa: S101 - the index says that there is something
        return self.layout.entry(number, self.layout.companion[0])

    def write(
        self, number: int, rows: pa.Table, columns: Mapping[str, int], companions: pa.Table | None = None
    ) -> None:
        """Replace a segment; without rows it is deleted.

        Args:
            number: the segment's.
            rows: its rows.
            columns: the additional columns of its index entry.
            companions: their companions; None: none.
        """
        if not rows.num_rows:
            self.remove(self.index["segment"] == number)
            return
        self.put(number, rows, companions)
        entry = {"segment": number, **columns, self.layout.rows: rows.num_rows}
        self.relist([number], {name: np.array([value]) for name, value in entry.items()}, [companions is not None])

    def put(self, number: int, rows: pa.Table, companions: pa.Table | None) -> None:
        """Write the entries of a segment; the index must be updated after it."""
        write_entry(self.store, self.layout.entry(number), rows)
        if companions is not None:
            write_entry(self.store, self._companion_entry(number), companions)
        elif number in self._flagged:
            self.store.remove(self._companion_entry(number))

    def relist(self, numbers: Sequence[int] | Ints, entries: Mapping[str, Ints], companions: Sequence[bool]) -> None:
        """Replace the index entries of changed segments; new ones are appended.

        Args:
            numbers: the changed segments.
            entries: the index columns of those that still exist.
            companions: whether each of these has companions.
        """
        other = ~np.isin(self.index["segment"], numbers)
        new = dict(entries)
        if self.layout.companion is not None:
            new[self.layout.companion[1]] = np.array(companions, np.int64)
        self._set_index({name: np.concatenate([column[other], new[name]]) for name, column in self.index.items()})

    def remove(self, gone: Flags) -> None:
        """Delete segments without reading them, by flags per index entry."""
        for number in self.numbers(gone):
            self.store.remove(self.layout.entry(number))
            if number in self._flagged:
                self.store.remove(self._companion_entry(number))
        self._set_index({name: column[~gone] for name, column in self.index.items()})

    def save(self) -> None:
        """Write the index, if it has changed."""
        if self._stored is None and not len(self.index["segment"]) and not self.layout.has_metadata:
            return
        table = pa.table(self.index).replace_schema_metadata({"beamish": json.dumps(self.about)})
        stored = entry_bytes(table)
        if stored != self._stored:
            self.store.put(self.layout.entry(INDEX), stored)
            self._stored = stored


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
        """The companions of a segment's rows in their stored form; None: no companions."""
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
