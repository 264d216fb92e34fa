"""Rows in segments: tables of Arrow bytes, and an index that says what is in which, so that a step reads only those it needs.

index       JSON about all of them, and one entry per segment
s<number>   a segment: a table

columns of the index (one entry per segment, int64):
    segment, rows    its number, and how many rows it has
    the rest         what its owner wants to know of it without reading it
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.contract.store import Store
from beamish.kernels.arrays import Flags, Ints
from beamish.tables.stored_tables import entry_bytes, naming_entry, read_entry, table_of, write_entry

INDEX = "index"


class SegmentStore:
    """Segments in a store, their entries under a name of their own.

    Attributes:
        about: notes about all of them, in terms of JSON.
        index: the index's columns.
    """

    def __init__(self, store: Store, name: str, columns: Sequence[str]) -> None:
        """Read the index.

        Args:
            store: the shard's.
            name: before their entries: ``name/s1``.
            columns: further columns of the index.

        Raises:
            StateError: it cannot be read.
        """
        self._store, self._name = store, name
        self._stored = store.get(self.entry(INDEX))
        self.about: dict[str, Any] = {}
        self.index: dict[str, Ints] = {column: np.empty(0, np.int64) for column in ("segment", "rows", *columns)}
        if self._stored is not None:
            table = table_of(self.entry(INDEX), self._stored)
            with naming_entry(self.entry(INDEX)):
                self.about = json.loads(table.schema.metadata[b"beamish"])
                self.index = {column: table[column].to_numpy().copy() for column in self.index}

    def entry(self, name: str) -> str:
        """The name of an entry in the store."""
        return f"{self._name}/{name}"

    @property
    def rows(self) -> int:
        """Number of rows in all segments."""
        return int(self.index["rows"].sum())

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
        return read_entry(self._store, self.entry(f"s{number}"))

    def write(self, number: int, rows: pa.Table, columns: Mapping[str, int]) -> None:
        """Write a segment in place of what it was; without rows it goes.

        Args:
            number: the segment's.
            rows: its rows.
            columns: the further columns of its index entry.
        """
        had = self.index["segment"] == number
        if not rows.num_rows:
            self.remove(had)
            return
        write_entry(self._store, self.entry(f"s{number}"), rows)
        entry = {"segment": number, "rows": rows.num_rows, **columns}
        self.index = {name: np.append(column[~had], entry[name]) for name, column in self.index.items()}

    def remove(self, gone: Flags) -> None:
        """Remove segments without reading them, of flags for the entries of the index."""
        for number in self.numbers(gone):
            self._store.remove(self.entry(f"s{number}"))
        self.index = {name: column[~gone] for name, column in self.index.items()}

    def save(self) -> None:
        """Write the index, if it is another than before; that of none is not written."""
        if self._stored is None and not len(self.index["segment"]):
            return
        table = pa.table(self.index).replace_schema_metadata({"beamish": json.dumps(self.about)})
        stored = entry_bytes(table)
        if stored != self._stored:
            self._store.put(self.entry(INDEX), stored)
            self._stored = stored
