"""Live panes of windows that were merged away and are not yet retracted (WITH_NEXT_PANE).

Each belongs to the window its own was merged into, and is retracted right before that window's next pane.

columns (one entry an orphan):
    owner               index of the window in the window table
    start_us, end_us    the window that vanished
    timing, index, on_time_index, is_first, stamp_us    its last pane's
    live_at             its values, in the window table's ``live`` pool
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.engine.windowing.window_table import Indices, WindowTable

_COLUMNS = {
    "start_us": "int64",
    "end_us": "int64",
    "timing": "int8",
    "index": "int64",
    "on_time_index": "int64",
    "is_first": "bool",
    "stamp_us": "int64",
}


class Orphans:
    """The orphans of the windows a step works on."""

    def __init__(self) -> None:
        self.columns: dict[str, NDArray[Any]] = {name: np.empty(0, dtype=dtype) for name, dtype in _COLUMNS.items()}
        self.columns["owner"] = np.empty(0, dtype=np.intp)
        self.columns["live_at"] = np.empty(0, dtype=np.int64)

    def add(self, columns: dict[str, NDArray[Any]]) -> None:
        """Add orphans, all columns given."""
        for name, column in self.columns.items():
            self.columns[name] = np.concatenate([column, columns[name]])

    def pass_on(self, parts: Indices, results: Indices, windows: int) -> None:
        """Windows ``parts[i]`` became ``results[i]``, which takes over their orphans."""
        heir = np.arange(windows)
        heir[parts] = results
        self.columns["owner"] = heir[self.columns["owner"]]

    def remove(self, owners: Indices) -> dict[str, NDArray[Any]]:
        """Take out the orphans of these windows; gives their columns."""
        taken = np.isin(self.columns["owner"], owners)
        out = {name: column[taken] for name, column in self.columns.items()}
        self.columns = {name: column[~taken] for name, column in self.columns.items()}
        return out

    def of(self, rows: Indices, table: WindowTable) -> pa.Table | None:
        """The orphans of these windows to be stored, the owner as a position in ``rows``; None: there are none."""
        mine = np.isin(self.columns["owner"], rows)
        if not mine.any():
            return None
        position = np.full(len(table), -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        values = table.live.take(self.columns["live_at"][mine])
        stored = {name: pa.array(self.columns[name][mine]) for name in _COLUMNS}
        stored["owner"] = pa.array(position[self.columns["owner"][mine]])
        return pa.table({**stored, **{f"live.{name}": values[name] for name in values.schema.names}})

    def read(self, stored: pa.Table, rows: Indices, table: WindowTable) -> None:
        """Take up stored orphans, whose owners are positions in ``rows``."""
        columns = {name: stored[name].to_numpy().astype(dtype) for name, dtype in _COLUMNS.items()}
        columns["owner"] = rows[stored["owner"].to_numpy()]
        names = [f"live.{field.name}" for field in table.live.schema]
        values = [
            stored[name] if name in stored.schema.names else pa.nulls(stored.num_rows, field.type)
            for name, field in zip(names, table.live.schema, strict=True)
        ]
        columns["live_at"] = table.live.append(pa.table(values, schema=table.live.schema))
        self.add(columns)
