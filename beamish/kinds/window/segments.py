"""Segments: the windows that end in one span of time, stored together.

A step reads and writes the segments it touches, and expiry drops whole segments. Windows that end at the end of time are
cut by a hash of their key instead. How long a span is changes with the number of windows (``SegmentPolicy``).

Windows that are counted by key are cut by a hash of their key (reaches.py: parts), since each key has come to a number of its own: those
of a part that are not full are one segment, and full ones, which are only kept, lie by spans of ends beside it. So a step costs what it
touches, whatever is kept.

columns of a stored segment (one entry per window):
    <name>          the window table's stored columns (windowing/window_table.py); objects of users' triggers as binary
    key.<name>      its key
    state.<name>    its accumulators
    live.<name>     the values last emitted, where they are kept
    ids.ids         the ids of the rows that it took, a list, where those that come again are dropped from it
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.errors import UserFunctionError
from beamish.kernels.codec import ALLOWED, decode, encode
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.window_table import WindowTable
from beamish.tables.keyed_records import HASHED
from beamish.tables.pool import columns_under
from beamish.triggers.trigger import WindowIndices


def counted_segments(
    span: int, end: NDArray[np.int64], part: NDArray[np.int64], full: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The segment of each of some windows that are counted by key.

    Args:
        span: how many ends a segment of full windows holds.
        end: int64, one per window, numbers of rows.
        part: int64, one per window, the part of its key.
        full: bool, one per window: whether its end is reached.

    Returns:
        int64, one per window: even where it is not full.
    """
    return np.where(full, (end // span * HASHED + part) * 2 + 1, part * 2)


def part_of_counted(segment: NDArray[np.int64]) -> NDArray[np.int64]:
    """The part of keys that each segment of windows counted by key is of."""
    return segment // 2 % HASHED


def to_stored(plan: WindowPlan, table: WindowTable, rows: WindowIndices) -> pa.Table:
    """Windows of the window table as a segment.

    Args:
        plan: the stage's plan.
        table: the window table.
        rows: intp, indices of the windows.
    """
    names, arrays = [], []
    for name in table.stored:
        names.append(name)
        arrays.append(_to_arrow(table[name][rows]))
    pools = [("key.", table.keys, "key_at"), ("state.", table.state, "state_at"), ("ids.", table.ids, "ids_at")]
    if plan.keeps_values:
        pools.append(("live.", table.values, "values_at"))
    for prefix, pool, pointer in pools:
        taken = pool.take(table[pointer][rows])
        names.extend(prefix + name for name in taken.schema.names)
        arrays.extend(taken.columns)
    return pa.table(arrays, names=names)


def append_stored(plan: WindowPlan, stored: pa.Table, table: WindowTable, **columns: Any) -> WindowIndices:
    """Append a segment's windows to the window table.

    Args:
        plan: the pipeline's plan.
        stored: the segment.
        table: the window table.
        columns: those of its columns that are given, so are not read; one value for all windows.

    Returns:
        the windows' indices.
    """
    rows = stored.num_rows
    all_columns: dict[str, Any] = {name: np.full(rows, value) for name, value in columns.items()}
    for name, (dtype, _) in table.stored.items():
        if name == "rows" and name not in stored.schema.names:
            continue  # they are counted from now on
        if name not in columns:
            all_columns[name] = _to_numpy(stored[name], dtype)
    all_columns["key_at"] = table.keys.append(columns_under(stored, "key.", table.keys.schema))
    all_columns["state_at"] = table.state.append(columns_under(stored, "state.", table.state.schema, plan.new_state))
    if plan.windows_have_ids:
        all_columns["ids_at"] = table.ids.append(columns_under(stored, "ids.", table.ids.schema))
    if plan.keeps_values:
        all_columns["values_at"] = table.values.append(columns_under(stored, "live.", table.values.schema))
        if not plan.options.retracts and not any(name.startswith("live.") for name in stored.schema.names):
            all_columns["has_pane"][:] = False  # what it held was not kept, so the next one is as good as the first
    return table.append(all_columns, rows)


def _to_arrow(column: NDArray[Any]) -> pa.Array:
    if column.dtype == object:
        try:
            return pa.array([None if cell is None else encode(cell) for cell in column.tolist()], pa.binary())
        except TypeError as error:
            raise UserFunctionError(
                f"a trigger of your own: its state is or holds {error}, which cannot be kept in the checkpoint; make it of {ALLOWED}"
            ) from error
    return pa.array(column)


def _to_numpy(column: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
    if dtype == "object":
        cells = np.empty(len(column), dtype=object)
        cells[:] = [None if cell is None else decode(cell) for cell in column.to_pylist()]
        return cells
    return np.array(column.to_numpy(), dtype=dtype)
