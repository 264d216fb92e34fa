"""Records in memory: cells of user types as an Arrow table, with columns of numbers and flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.arrays import Flags, Ints


@attrs.frozen(eq=False)
class Records:
    """n records. Subclasses declare their columns.

    Attributes:
        cells: n rows.
        columns: n entries each.
    """

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {}
    """The dtype and default of each column."""

    cells: pa.Table
    columns: dict[str, NDArray[Any]]

    @classmethod
    def none(cls, schema: pa.Schema) -> Self:
        """An empty table of records."""
        return cls(schema.empty_table(), {name: np.empty(0, dtype) for name, (dtype, _) in cls.COLUMNS.items()})

    @classmethod
    def new(cls, cells: pa.Table, **columns: NDArray[Any]) -> Self:
        """Records; omitted columns have their default value."""
        count = cells.num_rows
        usual = {name: np.full(count, value, dtype) for name, (dtype, value) in cls.COLUMNS.items()}
        return cls(cells, usual | columns)

    @classmethod
    def of_stored(cls, stored: pa.Table) -> Self:
        """Decode ``stored``."""
        columns = {name: np.array(stored[name].to_numpy(), dtype=dtype) for name, (dtype, _) in cls.COLUMNS.items()}
        return cls(stored.drop_columns(list(cls.COLUMNS)), columns)

    def stored(self) -> pa.Table:
        """Encode as one table."""
        names = [*self.cells.schema.names, *self.columns]
        return pa.table([*self.cells.columns, *map(pa.array, self.columns.values())], names=names)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate."""
        if len(parts) == 1:
            return parts[0]
        cells = pa.concat_tables([part.cells for part in parts]).combine_chunks()
        return cls(cells, {name: np.concatenate([part.columns[name] for part in parts]) for name in cls.COLUMNS})

    def __len__(self) -> int:
        return int(self.cells.num_rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def take(self, at: Ints | Flags) -> Self:
        """A subset, by indices or flags."""
        at = np.flatnonzero(at) if at.dtype == bool else at
        if len(at) == len(self) and bool((at == np.arange(len(self))).all()):
            return self
        return attrs.evolve(
            self,
            cells=self.cells.take(pa.array(at)),
            columns={name: column[at] for name, column in self.columns.items()},
        )

    def with_columns(self, **columns: NDArray[Any]) -> Self:
        """A copy with replaced columns."""
        return attrs.evolve(self, columns=self.columns | columns)

    def named(self, prefix: str) -> list[pa.Array]:
        """The cell columns with a prefix."""
        return [self.cells[name].combine_chunks() for name in self.cells.schema.names if name.startswith(prefix)]

    @property
    def keys(self) -> list[pa.Array]:
        """The key columns."""
        return self.named("key.")
