"""Rows in segments: tables of Arrow bytes, and an index that says what is in which, so that a step reads only those it needs.

index       JSON about all of them, and one entry per segment
s<number>   a segment: a table
<letter><number>    what belongs to rows of a segment, as ``Layout.beside`` says: a table with the column ``owner``, the row's place

columns of the index (one entry per segment, int64):
    segment, rows    its number, and how many rows it has; what the latter is called says the layout
    the rest         what its owner wants to know of it without reading it
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.store import Store
from beamish.kernels.arrays import Flags, Ints
from beamish.tables.stored_tables import entry_bytes, naming_entry, read_entry, table_of, write_entry

INDEX = "index"


@attrs.frozen(eq=False)
class Layout:
    """How a table lies in a shard's store.

    Attributes:
        name: before its entries: ``name/s1``; empty: they are ``s1``.
        columns: further columns of the index.
        rows: the index's column of the number of rows.
        beside: the letter of the entries of what belongs to rows, and the index's column of whether there are any; None: nothing does.
        later: the values of those columns that indices written by earlier versions may lack.
        is_noted: whether the index is written though there are no segments, since it notes more.
        check: raises StateError if what an index notes is of another format.
    """

    name: str
    columns: tuple[str, ...] = ()
    rows: str = "rows"
    beside: tuple[str, str] | None = None
    later: Mapping[str, int] = {}
    is_noted: bool = False
    check: Callable[[Mapping[str, Any]], None] = lambda _: None

    @property
    def index(self) -> tuple[str, ...]:
        """The columns of the index."""
        return ("segment", self.rows, *self.columns, *(self.beside or ())[1:])

    def entry(self, name: str | int, letter: str = "s") -> str:
        """The name of an entry in the store, or of that of a segment."""
        own = name if isinstance(name, str) else f"{letter}{name}"
        return f"{self.name}/{own}" if self.name else own


class SegmentStore:
    """Segments in a store.

    Args:
        store: the shard's.
        layout: how they lie in it.

    Attributes:
        about: notes about all of them, in terms of JSON.
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
        self.index: dict[str, Ints] = {column: np.empty(0, np.int64) for column in layout.index}
        if self._stored is not None:
            table = table_of(layout.entry(INDEX), self._stored)
            with naming_entry(layout.entry(INDEX)):
                self.about = json.loads(table.schema.metadata[b"beamish"])
                layout.check(self.about)
                for column, value in layout.later.items():
                    if column not in table.schema.names:
                        table = table.append_column(column, pa.array(np.full(table.num_rows, value)))
                self.index = {column: table[column].to_numpy().copy() for column in self.index}

    @property
    def rows(self) -> int:
        """Number of rows in all segments."""
        return int(self.index[self.layout.rows].sum())

    def numbers(self, wanted: Flags) -> list[int]:
        """The numbers of segments, of flags for the entries of the index."""
        return self.index["segment"][wanted].tolist()  # type: ignore[no-any-return]

    def known(self, numbers: Iterable[int]) -> list[int]:
        """Those of the numbers that there are segments of."""
        stored = set(self.index["segment"].tolist())
        return [number for number in numbers if number in stored]

    def read(self, number: int) -> pa.Table:
        """The rows of a segment.

        Raises:
            StateError: it is not there, or cannot be read.
        """
        return read_entry(self.store, self.layout.entry(number))

    def read_beside(self, number: int) -> pa.Table | None:
        """What belongs to rows of a segment; None: nothing does.

        Raises:
            StateError: it is not there, or cannot be read.
        """
        if not self._has_beside(number):
            return None
        return read_entry(self.store, self._entry_beside(number))

    def _has_beside(self, number: int) -> bool:
        if self.layout.beside is None:
            return False
        return bool(self.index[self.layout.beside[1]][self.index["segment"] == number].any())

    def _entry_beside(self, number: int) -> str:
        assert self.layout.beside is not None  # noqa: S101 - the index says that there is something
        return self.layout.entry(number, self.layout.beside[0])

    def write(self, number: int, rows: pa.Table, columns: Mapping[str, int], beside: pa.Table | None = None) -> None:
        """Write a segment in place of what it was; without rows it goes.

        Args:
            number: the segment's.
            rows: its rows.
            columns: the further columns of its index entry.
            beside: what belongs to them.
        """
        if not rows.num_rows:
            self.remove(self.index["segment"] == number)
            return
        self.put(number, rows, beside)
        entry = {"segment": number, **columns, self.layout.rows: rows.num_rows}
        self.list_anew([number], {name: np.array([value]) for name, value in entry.items()}, [beside is not None])

    def put(self, number: int, rows: pa.Table, beside: pa.Table | None) -> None:
        """Write the entries of a segment; the index is to be told."""
        write_entry(self.store, self.layout.entry(number), rows)
        if beside is not None:
            write_entry(self.store, self._entry_beside(number), beside)
        elif self._has_beside(number):
            self.store.remove(self._entry_beside(number))

    def list_anew(self, numbers: Iterable[int], entries: Mapping[str, Ints], beside: Iterable[bool]) -> None:
        """List segments in the index as they are now, after the others.

        Args:
            numbers: those that are another than before.
            entries: the columns of the index for those of them that there are, in order.
            beside: whether something belongs to rows of each of these.
        """
        other = ~np.isin(self.index["segment"], np.array(list(numbers), np.int64))
        new = dict(entries)
        if self.layout.beside is not None:
            new[self.layout.beside[1]] = np.array(list(beside), np.int64)
        self.index = {name: np.concatenate([column[other], new[name]]) for name, column in self.index.items()}

    def remove(self, gone: Flags) -> None:
        """Remove segments without reading them, of flags for the entries of the index."""
        for number in self.numbers(gone):
            self.store.remove(self.layout.entry(number))
            if self._has_beside(number):
                self.store.remove(self._entry_beside(number))
        self.index = {name: column[~gone] for name, column in self.index.items()}

    def save(self) -> None:
        """Write the index, if it is another than before."""
        if self._stored is None and not len(self.index["segment"]) and not self.layout.is_noted:
            return
        table = pa.table(self.index).replace_schema_metadata({"beamish": json.dumps(self.about)})
        stored = entry_bytes(table)
        if stored != self._stored:
            self.store.put(self.layout.entry(INDEX), stored)
            self._stored = stored
