"""Rows in segments: Arrow tables as bytes with an index, so that a step reads only the segments it needs.

index       metadata as JSON, and one entry per segment
s<number>   a segment: a table
<letter><number>    companions of a segment's rows (``Layout.companion``): a table with the column ``owner``, the row's position
in the segment

columns of the index (one entry per segment, int64):
    segment, rows    its number, and its number of rows, under the layout's name
    the rest         facts for its owner, available without reading it
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.contract.kept import INDEX, Layout
from beamish.contract.store import Store
from beamish.kernels.arrays import Flags, Ints
from beamish.tables.stored_tables import entry_bytes, naming_entry, read_entry, table_of, write_entry


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
        """The rows of a segment.

        Raises:
            StateError: it is missing or damaged.
        """
        return read_entry(self.store, self.layout.entry(number))

    def read_companions(self, number: int) -> pa.Table | None:
        """The companions of a segment's rows; None: there are none.

        Raises:
            StateError: it is missing or damaged.
        """
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
