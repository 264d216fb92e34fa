"""Append-only pools of columns, and stored columns under a prefix."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.arrays import NO_ENTRY
from beamish.kernels.buffers import cast


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
    columns = []
    for field in schema:
        if prefix + field.name in table.schema.names:
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
