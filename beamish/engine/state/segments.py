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

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.engine.windowing.keyed_records import HASHED
from beamish.engine.windowing.window_table import Pool, WindowTable, columns_under
from beamish.errors import UserFunctionError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.codec import ALLOWED, decode, encode
from beamish.kernels.codes import hash_rows
from beamish.plan.window_plan import WindowPlan
from beamish.triggers.trigger import WindowIndices

_HASHED_SEGMENTS = 64
_FIRST_HASHED = -(2**62)
"""The number of the first segment of windows that end at the end of time."""


@attrs.frozen
class SegmentPolicy:
    """How windows are cut into segments; it may differ from step to step and changes nothing in what comes out.

    Attributes:
        few_segments: this number of segments is never too great.
        few_windows: with more segments than that, spans get longer where segments hold fewer windows on average.
        many_windows: spans get shorter where segments hold more windows on average.
        shortest_us, longest_us: bounds of a span, in microseconds.
        unknown_period_us: the least span where the window option does not say how far apart windows end.
        most_segments: the least span is such that allowed lateness has no more segments than that.
        shortest_rows, periods: of windows counted by key a span of full ones is at least so many rows and periods long.
    """

    few_segments: int = 16
    few_windows: int = 512
    many_windows: int = 65_536
    shortest_us: int = 60_000_000
    longest_us: int = 10 * 365 * 86_400_000_000
    unknown_period_us: int = 3_600_000_000
    most_segments: int = 2048
    shortest_rows: int = 512
    periods: int = 32

    def least_span_us(self, plan: WindowPlan) -> int:
        """The span that a pipeline begins with, and never goes below."""
        period, lateness = plan.window.period_us or self.unknown_period_us, plan.lateness
        if plan.counts_rows:
            return max(period * self.periods, self.shortest_rows)
        return min(max(period, self.shortest_us, lateness // self.most_segments), self.longest_us)

    def next_span_us(self, least_us: int, span_us: int, segments: int, windows: int) -> int:
        """The span for the next step: longer where segments hold few windows, shorter where they hold many.

        Args:
            least_us: the least that it may be, microseconds.
            span_us: the span now.
            segments: number of segments.
            windows: number of windows in them.
        """
        if segments > self.few_segments and windows < segments * self.few_windows:
            span_us *= -(-segments * self.few_windows // windows)
        elif windows > segments * self.many_windows:
            span_us //= -(-windows // (segments * self.few_windows))
        return min(max(span_us, least_us), self.longest_us)


DEFAULT_POLICY = SegmentPolicy()


def segment_numbers(
    span_us: int, end_us: NDArray[np.int64], keys: Pool, key_at: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The segment of each window, by its end, or by its key if it ends at the end of time.

    Args:
        span_us: how long a span of ends a segment holds, microseconds.
        end_us: int64, one per window, microseconds since the epoch.
        keys: the pool of keys.
        key_at: int64, one per window: where its key is in the pool.

    Returns:
        int64, one per window: the number of its segment.
    """
    number = end_us // span_us
    never = np.flatnonzero(end_us == END_OF_TIME_US)
    if len(never):
        hashes = hash_rows(keys.take(key_at[never]).columns, len(never))
        number[never] = _FIRST_HASHED + (hashes % np.uint64(_HASHED_SEGMENTS)).astype(np.int64)
    return number


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
