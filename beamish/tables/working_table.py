"""Working tables: the rows of a step as numpy columns, with Arrow values in pools.

A row refers to its entries in the pools: a change appends an entry and updates the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.buffers import NO_ENTRY, NO_VALUE, Ints, cast
from beamish.tables.segments import Rows


def rows_without_columns(rows: int) -> pa.Table:
    """A table of this many rows and no columns, such as the keys of an unkeyed pipeline."""
    return pa.table({"": np.zeros(rows, np.int8)}).select([])


def columns_under(table: pa.Table, prefix: str, schema: pa.Schema, new: pa.Table | None = None) -> pa.Table:
    """Extract the columns of a stored table under a prefix, into a schema that may have more columns or wider types.

    Args:
        table: the stored table.
        prefix: the prefix of their names.
        schema: their names without it, and types.
        new: a table of one row, with the value of missing columns; None: null.
    """
    columns, stored = [], set(table.schema.names)
    for field in schema:
        if prefix + field.name in stored:
            column = table[prefix + field.name]
            columns.append(column if column.type == field.type else cast(column.combine_chunks(), field.type))
        elif new is None:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            columns.append(new[field.name].take(pa.array(np.zeros(table.num_rows, dtype=np.int64))))
    return pa.table(columns, schema=schema) if columns else rows_without_columns(table.num_rows)


class Pool:
    """An append-only pool of entries of Arrow columns."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._tables: list[pa.Table] = []
        self._entries = 0

    def append(self, table: pa.Table) -> NDArray[np.int64]:
        """Append entries; returns their positions."""
        at = np.arange(self._entries, self._entries + table.num_rows, dtype=np.int64)
        if table.num_rows:
            self._tables.append(table)
            self._entries += table.num_rows
        return at

    def take(self, at: NDArray[np.int64]) -> pa.Table:
        """The entries at these positions; null for NO_ENTRY."""
        if not self.schema.names:
            return rows_without_columns(len(at))
        if len(self._tables) > 1:
            self._tables = [pa.concat_tables(self._tables).combine_chunks()]
        missing = at == NO_ENTRY
        if not self._tables:
            return pa.table([pa.nulls(len(at), field.type) for field in self.schema], schema=self.schema)
        return self._tables[0].take(pa.array(at, mask=missing if missing.any() else None))


Declared = Mapping[str, tuple[str, Any]]
"""Dtype and initial value of columns, by name."""
Columns = dict[str, NDArray[Any]]

_TRACKING: Declared = {"gone": ("bool", False), "touched": ("bool", False), "segment": ("int64", NO_VALUE)}


def new_columns(declared: Declared, rows: int) -> Columns:
    """The declared columns of new rows."""
    return {name: np.full(rows, value, dtype=dtype) for name, (dtype, value) in declared.items()}


class WorkingTable(Rows):
    """The rows of a step.

    Args:
        stored: the stored columns.
        working: columns that are not stored, besides those of ``segments.py``.
        pools: by prefix of their stored columns: the column with positions in the pool, and the pool.

    Attributes:
        columns: by name, one value per row.
        companion_rows: companions of the rows; None: they have none.
    """

    companion_rows: Companions | None = None

    def __init__(self, stored: Declared, working: Declared, pools: Mapping[str, tuple[str, Pool]]) -> None:
        self._stored, self._pools = stored, pools
        pointers = {pointer: ("int64", NO_ENTRY) for pointer, _ in pools.values()}
        self._declared = {**stored, **_TRACKING, **pointers, **working}
        self.columns = new_columns(self._declared, 0)

    def __len__(self) -> int:
        return len(self.columns["segment"])

    def __getitem__(self, column: str, /) -> NDArray[Any]:
        return self.columns[column]

    def append(self, rows: int, columns: Mapping[str, Any]) -> Ints:
        """Append rows; omitted columns have their initial value. Returns their indices."""
        first = len(self)
        if rows:
            new = new_columns({name: column for name, column in self._declared.items() if name not in columns}, rows)
            for name, column in self.columns.items():
                self.columns[name] = np.concatenate([column, columns[name] if name in columns else new[name]])
        return np.arange(first, first + rows)

    def read(self, stored: pa.Table, segment: Ints) -> Ints:
        columns = {"segment": segment, "touched": np.zeros(stored.num_rows, bool), **self.given(stored)}
        for name, (dtype, _) in self._stored.items():
            if name not in columns:
                columns[name] = self.of_stored(stored[name], dtype)
        for prefix, (pointer, pool) in self._pools.items():
            columns[pointer] = pool.append(columns_under(stored, prefix, pool.schema, self.new_entry(prefix)))
        return self.append(stored.num_rows, columns)

    def given(self, stored: pa.Table) -> Columns:
        """Columns of stored rows that are computed instead of read."""
        return {}

    def new_entry(self, prefix: str) -> pa.Table | None:
        """One row with the values of pool columns that are missing in stored rows; None: null."""
        return None

    def of_stored(self, column: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
        """A stored column as numpy."""
        return np.array(column.to_numpy(), dtype=dtype)

    def to_stored(self, column: NDArray[Any]) -> pa.Array:
        """A column in its stored form."""
        return pa.array(column)

    def stored(self, at: Ints) -> pa.Table:
        columns = {name: self.to_stored(self.columns[name][at]) for name in self._stored}
        for prefix, (pointer, pool) in self._pools.items():
            taken = pool.take(self.columns[pointer][at])
            columns |= {prefix + name: taken[name] for name in taken.schema.names}
        return pa.table(columns)

    def read_companions(self, stored: pa.Table, at: Ints) -> None:
        assert self.companion_rows is not None  # noqa: S101 - it was stored
        self.companion_rows.read(stored, at)

    def companions(self, at: Ints) -> pa.Table | None:
        return None if self.companion_rows is None else self.companion_rows.stored(at, len(self))


class Companions:
    """Companions: rows that each belong to a row of a working table and are stored next to its segment.

    Args:
        declared: the stored columns; ``owner``, the index of the owning row, and ``values_at``, the entry in the pool, are added.
        prefix: prefix of the stored value columns.
        pool: the value pool of the table.

    Attributes:
        columns: by name, one value per row.
    """

    def __init__(self, declared: Declared, prefix: str, pool: Pool) -> None:
        self._declared, self._prefix, self._pool = declared, prefix, pool
        self.columns = new_columns({**declared, "owner": ("int64", 0), "values_at": ("int64", 0)}, 0)

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.columns[column]

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add companions; columns that are not declared are ignored."""
        self.columns = {name: np.concatenate([column, columns[name]]) for name, column in self.columns.items()}

    def pass_on(self, parts: Ints, results: Ints, rows: int) -> None:
        """Move the companions of ``parts[i]`` to ``results[i]``; ``rows``: the number of rows of the table."""
        heir = np.arange(rows)
        heir[parts] = results
        self.columns["owner"] = heir[self.columns["owner"]]

    def remove(self, owners: Ints) -> Columns:
        """Remove the companions of some rows; returns their columns."""
        taken = np.isin(self.columns["owner"], owners)
        out = {name: column[taken] for name, column in self.columns.items()}
        self.columns = {name: column[~taken] for name, column in self.columns.items()}
        return out

    def stored(self, at: Ints, rows: int) -> pa.Table | None:
        """The companions of ``at`` in their stored form, owners as positions in ``at``; ``rows``: the number of rows of the table."""
        if not len(self.columns["owner"]):
            return None
        mine = np.isin(self.columns["owner"], at)
        if not mine.any():
            return None
        place = np.full(rows, NO_ENTRY, dtype=np.int64)
        place[at] = np.arange(len(at))
        values = self._pool.take(self.columns["values_at"][mine])
        stored = {name: pa.array(self.columns[name][mine]) for name in self._declared}
        stored["owner"] = pa.array(place[self.columns["owner"][mine]])
        return pa.table({**stored, **{self._prefix + name: values[name] for name in values.schema.names}})

    def read(self, stored: pa.Table, at: Ints) -> None:
        """Append stored companions, whose owners are positions in ``at``."""
        columns = {name: np.array(stored[name].to_numpy(), dtype) for name, (dtype, _) in self._declared.items()}
        owner = at[stored["owner"].to_numpy()]
        values_at = self._pool.append(columns_under(stored, self._prefix, self._pool.schema))
        self.add({**columns, "owner": owner, "values_at": values_at})
