"""The changes of a table in memory, each with the span in which it counts: those of a key lie end to end.

columns (one entry per change; ``_us``: int64, microseconds since the epoch):
    from_us         its time
    to_us           the time of the key's next change; END_OF_TIME_US: there is none
    step            int64: the number of the step in which it came
    deletes         bool
    counts          bool: of those of one key and time the one that counts (others are kept only if changes are taken back)
    version_us      when the version that it is part of began; its own time unless equal values before it are one version
    panes           int64: how many panes came of that version; of several of one version its last change says it
    late            bool: whether the last of them was LATE
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.plan.versions_plan import TablePlan

COLUMNS: dict[str, tuple[str, Any]] = {
    "from_us": ("int64", 0),
    "to_us": ("int64", END_OF_TIME_US),
    "step": ("int64", 0),
    "deletes": ("bool", False),
    "counts": ("bool", True),
    "version_us": ("int64", 0),
    "panes": ("int64", 0),
    "late": ("bool", False),
}


def cells_schema(plan: TablePlan) -> pa.Schema:
    """The columns of keys, values and sequence."""
    sequence = [] if plan.sequence is None else [pa.field("sequence", plan.sequence.type)]
    keys = [pa.field(f"key.{field.name}", field.type) for field in plan.key_schema]
    return pa.schema([*keys, *(pa.field(f"value.{field.name}", field.type) for field in plan.value_schema), *sequence])


@attrs.frozen(eq=False)
class Changes:
    """Changes of a table.

    Attributes:
        cells: their keys, values and sequence, n rows.
        columns: see above, n entries each.
    """

    cells: pa.Table
    columns: dict[str, NDArray[Any]]

    @classmethod
    def none(cls, schema: pa.Schema) -> Changes:
        """No changes."""
        return cls(schema.empty_table(), {name: np.empty(0, dtype) for name, (dtype, _) in COLUMNS.items()})

    @classmethod
    def new(cls, cells: pa.Table, **columns: NDArray[Any]) -> Changes:
        """Changes; a column that is not given has its usual value."""
        count = cells.num_rows
        usual = {name: np.full(count, value, dtype) for name, (dtype, value) in COLUMNS.items()}
        return cls(cells, usual | columns)

    @classmethod
    def of_stored(cls, stored: pa.Table) -> Changes:
        """From what ``stored`` gave."""
        columns = {name: np.array(stored[name].to_numpy(), dtype=dtype) for name, (dtype, _) in COLUMNS.items()}
        return cls(stored.drop_columns(list(COLUMNS)), columns)

    def stored(self) -> pa.Table:
        """As one table."""
        cells = self.cells
        return pa.table(
            [*cells.columns, *map(pa.array, self.columns.values())], names=[*cells.schema.names, *self.columns]
        )

    @classmethod
    def concat(cls, parts: Sequence[Changes]) -> Changes:
        """Several as one."""
        if len(parts) == 1:
            return parts[0]
        cells = pa.concat_tables([part.cells for part in parts]).combine_chunks()
        return cls(cells, {name: np.concatenate([part.columns[name] for part in parts]) for name in COLUMNS})

    def __len__(self) -> int:
        return self.cells.num_rows

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def take(self, at: Ints | Flags) -> Changes:
        """Some of them, by indices or flags."""
        at = np.flatnonzero(at) if at.dtype == bool else at
        if len(at) == len(self) and bool((at == np.arange(len(self))).all()):
            return self
        return Changes(self.cells.take(pa.array(at)), {name: column[at] for name, column in self.columns.items()})

    def _with(self, names: str) -> list[pa.Array]:
        return [self.cells[name].combine_chunks() for name in self.cells.schema.names if name.startswith(names)]

    @property
    def keys(self) -> list[pa.Array]:
        """The key columns."""
        return self._with("key.")

    @property
    def values(self) -> list[pa.Array]:
        """The value columns."""
        return self._with("value.")
