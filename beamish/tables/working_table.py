"""Rows that a step works on: small numbers as numpy columns, and what is Arrow in pools.

A row points at its entries in the pools, so that a change is an entry appended and a pointer moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.arrays import NO_ENTRY, NO_VALUE, Ints
from beamish.tables.pool import Pool, columns_under
from beamish.tables.segmented import Rows

Declared = Mapping[str, tuple[str, Any]]
"""Columns by name: their dtype, and the value in a new row."""
Columns = dict[str, NDArray[Any]]

_LIES: Declared = {"gone": ("bool", False), "touched": ("bool", False), "segment": ("int64", NO_VALUE)}


def new_columns(declared: Declared, rows: int) -> Columns:
    """The declared columns for rows that are new."""
    return {name: np.full(rows, value, dtype=dtype) for name, (dtype, value) in declared.items()}


class WorkingTable(Rows):
    """Rows that a step works on.

    Args:
        stored: the columns that are stored.
        working: the columns that are not, beside those of ``segmented.py``.
        pools: by what the names of its columns begin with when they are stored: the column that points into it, and it.

    Attributes:
        columns: by name, one entry per row.
        owned: what belongs to rows; None: nothing can.
    """

    owned: OwnedRows | None = None

    def __init__(self, stored: Declared, working: Declared, pools: Mapping[str, tuple[str, Pool]]) -> None:
        self._stored, self._pools = stored, pools
        pointers = {pointer: ("int64", NO_ENTRY) for pointer, _ in pools.values()}
        self._declared = {**stored, **_LIES, **pointers, **working}
        self.columns = new_columns(self._declared, 0)

    def __len__(self) -> int:
        return len(self.columns["segment"])

    def __getitem__(self, column: str, /) -> NDArray[Any]:
        return self.columns[column]

    def append(self, rows: int, columns: Mapping[str, Any]) -> Ints:
        """Append rows; a column that is not given has its value for new rows. Gives their indices."""
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
        """Columns of stored rows that are not read."""
        return {}

    def new_entry(self, prefix: str) -> pa.Table | None:
        """The values, one row, of columns of a pool that were not stored yet; None: null."""
        return None

    def of_stored(self, column: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
        """A column that was stored."""
        return np.array(column.to_numpy(), dtype=dtype)

    def to_stored(self, column: NDArray[Any]) -> pa.Array:
        """A column to be stored."""
        return pa.array(column)

    def stored(self, at: Ints) -> pa.Table:
        columns = {name: self.to_stored(self.columns[name][at]) for name in self._stored}
        for prefix, (pointer, pool) in self._pools.items():
            taken = pool.take(self.columns[pointer][at])
            columns |= {prefix + name: taken[name] for name in taken.schema.names}
        return pa.table(columns)

    def read_beside(self, stored: pa.Table, at: Ints) -> None:
        assert self.owned is not None  # noqa: S101 - it was stored
        self.owned.read(stored, at)

    def beside(self, at: Ints) -> pa.Table | None:
        return None if self.owned is None else self.owned.stored(at, len(self))


class OwnedRows:
    """Rows that belong to rows of a table, stored beside these.

    Args:
        declared: their columns; with ``owner``, the index of the row they belong to, and ``values_at``, where their values are in the pool.
        prefix: what the names of the values' columns begin with when they are stored.
        pool: of values, that of the table.

    Attributes:
        columns: by name, one entry per row.
    """

    def __init__(self, declared: Declared, prefix: str, pool: Pool) -> None:
        self._declared, self._prefix, self._pool = declared, prefix, pool
        self.columns = new_columns({**declared, "owner": ("int64", 0), "values_at": ("int64", 0)}, 0)

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.columns[column]

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add some, all columns given; others are ignored."""
        self.columns = {name: np.concatenate([column, columns[name]]) for name, column in self.columns.items()}

    def pass_on(self, parts: Ints, results: Ints, rows: int) -> None:
        """Of a table of so many rows ``parts[i]`` became ``results[i]``, which takes over what belongs to them."""
        heir = np.arange(rows)
        heir[parts] = results
        self.columns["owner"] = heir[self.columns["owner"]]

    def remove(self, owners: Ints) -> Columns:
        """Take out those of these rows; gives their columns."""
        taken = np.isin(self.columns["owner"], owners)
        out = {name: column[taken] for name, column in self.columns.items()}
        self.columns = {name: column[~taken] for name, column in self.columns.items()}
        return out

    def stored(self, at: Ints, rows: int) -> pa.Table | None:
        """Those of the rows ``at`` of a table of so many, the owner as a place in ``at``; None: there are none."""
        mine = np.isin(self.columns["owner"], at) if len(self.columns["owner"]) else np.empty(0, bool)
        if not mine.any():
            return None
        place = np.full(rows, NO_ENTRY, dtype=np.int64)
        place[at] = np.arange(len(at))
        values = self._pool.take(self.columns["values_at"][mine])
        stored = {name: pa.array(self.columns[name][mine]) for name in self._declared}
        stored["owner"] = pa.array(place[self.columns["owner"][mine]])
        return pa.table({**stored, **{self._prefix + name: values[name] for name in values.schema.names}})

    def read(self, stored: pa.Table, at: Ints) -> None:
        """Take up stored ones, whose owners are places in ``at``."""
        columns = {name: np.array(stored[name].to_numpy(), dtype) for name, (dtype, _) in self._declared.items()}
        owner = at[stored["owner"].to_numpy()]
        values_at = self._pool.append(columns_under(stored, self._prefix, self._pool.schema))
        self.add({**columns, "owner": owner, "values_at": values_at})
