"""Inherited panes: panes of windows that were merged away, which still stand (WITH_NEXT_PANE).

Each belongs to the window that its own was merged into, and is retracted right before that window's next pane.

columns (one entry per inherited pane; ``_us``: int64, microseconds since the epoch):
    owner               intp: index of the window in the window table; stored: its row in the segment
    start_us, end_us    the window that vanished
    timing, index, on_time_index, is_first, pane_time_us    its last pane's (output.py)
    values_at           int64: its values, in the window table's pool; stored: the columns ``live.<name>``
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.arrays import NO_ENTRY
from beamish.kinds.window.window_table import WindowTable
from beamish.tables.pool import columns_under
from beamish.triggers.trigger import WindowIndices

_COLUMNS = {
    "start_us": "int64",
    "end_us": "int64",
    "timing": "int8",
    "index": "int64",
    "on_time_index": "int64",
    "is_first": "bool",
    "pane_time_us": "int64",
}


class InheritedPanes:
    """The inherited panes of the windows a step works on."""

    def __init__(self) -> None:
        self.columns: dict[str, NDArray[Any]] = {name: np.empty(0, dtype=dtype) for name, dtype in _COLUMNS.items()}
        self.columns["owner"] = np.empty(0, dtype=np.intp)
        self.columns["values_at"] = np.empty(0, dtype=np.int64)

    def add(self, columns: dict[str, NDArray[Any]]) -> None:
        """Add some, all columns given."""
        for name, column in self.columns.items():
            self.columns[name] = np.concatenate([column, columns[name]])

    def pass_on(self, parts: WindowIndices, results: WindowIndices, windows: int) -> None:
        """Windows ``parts[i]`` became ``results[i]``, which takes over what they inherited."""
        heir = np.arange(windows)
        heir[parts] = results
        self.columns["owner"] = heir[self.columns["owner"]]

    def remove(self, owners: WindowIndices) -> dict[str, NDArray[Any]]:
        """Take out those of these windows; gives their columns."""
        taken = np.isin(self.columns["owner"], owners)
        out = {name: column[taken] for name, column in self.columns.items()}
        self.columns = {name: column[~taken] for name, column in self.columns.items()}
        return out

    def of(self, rows: WindowIndices, table: WindowTable) -> pa.Table | None:
        """Those of these windows to be stored, the owner as a position in ``rows``; None: there are none."""
        if not len(self.columns["owner"]):
            return None
        mine = np.isin(self.columns["owner"], rows)
        if not mine.any():
            return None
        position = np.full(len(table), NO_ENTRY, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        values = table.values.take(self.columns["values_at"][mine])
        stored = {name: pa.array(self.columns[name][mine]) for name in _COLUMNS}
        stored["owner"] = pa.array(position[self.columns["owner"][mine]])
        return pa.table({**stored, **{f"live.{name}": values[name] for name in values.schema.names}})

    def read(self, stored: pa.Table, rows: WindowIndices, table: WindowTable) -> None:
        """Take up stored ones, whose owners are positions in ``rows``."""
        columns = {name: stored[name].to_numpy().astype(dtype) for name, dtype in _COLUMNS.items()}
        columns["owner"] = rows[stored["owner"].to_numpy()]
        columns["values_at"] = table.values.append(columns_under(stored, "live.", table.values.schema))
        self.add(columns)
