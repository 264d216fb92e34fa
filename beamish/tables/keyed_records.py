"""Records by key, in segments by a hash of the key: a step reads the segments of the keys that it touches.

A record's index is its position in memory, and is stable for the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from beamish.contract.kept import KeyedTable, Layout
from beamish.contract.store import Store
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.codes import factorize_rows, hash_rows
from beamish.tables.records import Records
from beamish.tables.segment_store import SegmentStore
from beamish.tables.segmented_records import Columns, SegmentedRecords, record_table

R = TypeVar("R", bound=Records)

NOWHERE = -1
"""No record."""
HASHED = 64
"""Number of hash buckets."""
DUE = "due_us"
"""The index column with the due time of a segment."""


def keyed_schema(keys: pa.Schema) -> pa.Schema:
    """Key columns as cells."""
    return pa.schema([(f"key.{field.name}", field.type) for field in keys])


def cells_of_keys(keys: pa.Schema) -> pa.Schema:
    """The cells of records of keys; without key columns a single constant one."""
    return keyed_schema(keys) if keys.names else pa.schema([("key", pa.int8())])


def keyed_layout(name: str) -> Layout:
    """The layout of records of keys under a name."""
    return Layout(name, (DUE,))


def keyed_table(
    keys: pa.Schema, name: str, kind: type[Records], opened: Callable[[Store], SegmentedRecords[Any]]
) -> KeyedTable:
    """Declare a table of records of keys.

    Args:
        keys: the key columns.
        name: before its entries in a store.
        kind: what a record is.
        opened: opens the table in a store.
    """
    return record_table(keyed_layout(name), kind.none(cells_of_keys(keys)), keyed_schema(keys).names, opened)


def parts_of_keys(keys: pa.Table) -> Ints:
    """The bucket of each key (normalised), by the lower bits of its hash; the upper ones determine its shard."""
    hashes = hash_rows(keys.columns, keys.num_rows)
    return (hashes % np.uint64(HASHED)).astype(np.int64)


class KeyedRecords(SegmentedRecords[R], Generic[R]):
    """The loaded records of a shard.

    Args:
        keys: the key columns; empty: a single record.
        kind: the class of records.
        store: the shard's.
        name: prefix of their entries.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, keys: pa.Schema, kind: type[R], store: Store, name: str) -> None:
        self._by_key, self._cells_schema = bool(keys.names), cells_of_keys(keys)
        super().__init__(SegmentStore(store, keyed_layout(name)), kind.none(self._cells_schema))

    @property
    def next_due(self) -> int | None:
        """The least of the entries ``due``, or None."""
        return min(self.segments.index[DUE].tolist(), default=None)

    def load_due(self, at: int) -> None:
        """Load the segments with due records."""
        self.load_where(self.segments.index[DUE] <= at)

    def find(self, keys: pa.Table, *, new: bool = False) -> Ints:
        """The record of each key.

        Args:
            keys: key columns, normalised, n rows.
            new: whether to create missing ones.

        Returns:
            int64[n], indices of records; NOWHERE: no record.
        """
        cells = self._cells(keys)
        by_key = factorize_rows(cells.columns, cells.num_rows)
        one = cells.take(pa.array(by_key.first()))
        self.load(np.unique(parts_of_keys(one)).tolist())
        known = np.flatnonzero(self.alive)
        have = self.records.cells.take(pa.array(known))
        both = [
            pa.chunked_array([*a.chunks, *b.chunks], a.type) for a, b in zip(have.columns, one.columns, strict=True)
        ]
        code = factorize_rows(both, len(known) + one.num_rows).of[len(known) :]
        at = np.full(one.num_rows, NOWHERE)
        there = code < len(known)
        at[there] = known[code[there]]
        if new and not there.all():
            first = len(self.alive)
            at[~there] = np.arange(first, first + int((~there).sum()))
            self.add(self._none.new(one.take(pa.array(np.flatnonzero(~there)))))
        return at[by_key.of]

    def _cells(self, keys: pa.Table) -> pa.Table:
        if self._by_key:
            return pa.table(keys.columns, schema=self._cells_schema)
        return pa.table([pa.array(np.zeros(keys.num_rows, np.int8))], schema=self._cells_schema)

    def keys(self, at: Ints) -> pa.Table:
        """The keys of records."""
        cells = self.records.cells.take(pa.array(at))
        return (
            cells.rename_columns([name.removeprefix("key.") for name in cells.schema.names]) if self._by_key else cells
        )

    def parts(self, at: Ints) -> Ints:
        """The buckets of the keys of records."""
        return parts_of_keys(self.records.cells.take(pa.array(at)))

    def save_due(self, kept: Callable[[R], Flags], due_us: Callable[[Columns], Ints]) -> None:
        """Write the changes of the step.

        Args:
            kept: selects the records to keep among those written.
            due_us: computes the due times of records from their columns.
        """
        self.write_back(
            lambda records: parts_of_keys(records.cells), kept, lambda columns, runs: {DUE: runs.least(due_us(columns))}
        )
