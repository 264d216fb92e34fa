"""What a step gives: panes, retractions and dropped rows, gathered as blocks of rows and made into one table.

columns of a block (one entry per row of output; ``_us``: int64, microseconds since the epoch):
    key_at              int64: its key, in the window table's pool
    start_us, end_us    its window
    windowless          bool: it has none
    kind                int8: PANE_KIND, RETRACTION_KIND or DROPPED_KIND
    timing              int8: EARLY, ON_TIME, LATE or UNKNOWN
    index, on_time_index, is_first, is_last    int64, int64, bool, bool: the pane's
    pane_time_us        the pane's timestamp under a combiner; NO_VALUE: that of the end of its window
    values_at           int64: its values, in the window table's pool; NO_ENTRY for a dropped row
    reason              int8: why it was dropped, among REASONS (dropped_rows.py)
    late_by_us          int64, microseconds: the watermark less its event time when it was dropped; NO_VALUE: unknown
    row_at              int64: the dropped row, among the step's dropped rows
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.engine.windowing.dropped_rows import DroppedRows
from beamish.engine.windowing.window_table import NO_ENTRY, NO_VALUE, Pool
from beamish.instants import END_OF_TIME_US
from beamish.pane import PaneKind, PaneTiming
from beamish.plan.schemas import PANE, TIMESTAMP
from beamish.plan.window_plan import WindowPlan

KINDS = (PaneKind.PANE, PaneKind.RETRACTION, PaneKind.DROPPED)
TIMINGS = (PaneTiming.EARLY, PaneTiming.ON_TIME, PaneTiming.LATE, PaneTiming.UNKNOWN)
PANE_KIND, RETRACTION_KIND, DROPPED_KIND = range(3)
EARLY, ON_TIME, LATE, UNKNOWN = range(4)

Block = dict[str, NDArray[Any]]

_COLUMNS: dict[str, tuple[str, Any]] = {
    "key_at": ("int64", NO_ENTRY),
    "start_us": ("int64", 0),
    "end_us": ("int64", 0),
    "windowless": ("bool", False),
    "kind": ("int8", PANE_KIND),
    "timing": ("int8", UNKNOWN),
    "index": ("int64", 0),
    "on_time_index": ("int64", -1),
    "is_first": ("bool", False),
    "is_last": ("bool", False),
    "pane_time_us": ("int64", NO_VALUE),
    "values_at": ("int64", NO_ENTRY),
    "reason": ("int8", 0),
    "late_by_us": ("int64", NO_VALUE),
    "row_at": ("int64", NO_ENTRY),
}


def make_block(rows: int, **columns: Any) -> Block:
    """A block of ``rows`` rows; a column that is not given has its usual value."""
    usual = {name: np.full(rows, value, dtype) for name, (dtype, value) in _COLUMNS.items()}
    return {**usual, **{name: np.broadcast_to(column, rows) for name, column in columns.items()}}


def sort_blocks(blocks: Sequence[Block], place: NDArray[np.int64]) -> Block:
    """Blocks as one, in the order of ``place`` (int64, one per row); rows of one place stay in theirs."""
    order = np.argsort(place, kind="stable")
    return {name: np.concatenate([block[name] for block in blocks])[order] for name in _COLUMNS}


class Output:
    """Rows of output in the order in which they come out."""

    def __init__(self, plan: WindowPlan) -> None:
        self._plan = plan
        self._blocks: list[Block] = []
        self._dropped_rows = DroppedRows(plan)

    def add(self, rows: int, **columns: Any) -> None:
        """Add ``rows`` rows; a column that is not given has its usual value."""
        if rows:
            self.add_block(make_block(rows, **columns))

    def add_block(self, block: Block) -> None:
        """Add a block of rows."""
        self._blocks.append(block)

    def add_dropped(self, rows: pa.Table, **columns: Any) -> None:
        """Add rows that were dropped."""
        self.add(rows.num_rows, kind=DROPPED_KIND, row_at=self._dropped_rows.append(rows), **columns)

    def table(self, keys: Pool, values: Pool) -> pa.Table:
        """All rows in the plan's ``pane_schema``."""
        plan = self._plan
        if not self._blocks:
            return plan.pane_schema.empty_table()
        column = {name: np.concatenate([block[name] for block in self._blocks]) for name in _COLUMNS}
        dropped = column["kind"] == DROPPED_KIND
        output = values.take(column["values_at"])
        if plan.join is not None:
            row, pairs = plan.join.explode(output.column(0).combine_chunks(), dropped)
            column, dropped = {name: entries[row] for name, entries in column.items()}, dropped[row]
            output = pa.table([pairs], schema=plan.output_schema)
        columns = [
            *keys.take(column["key_at"]).columns,
            _windows(column),
            *output.columns,
            _panes(column),
            _timestamps(column["pane_time_us"], column["end_us"], dropped),
        ]
        if plan.options.with_dropped:
            rows = self._dropped_rows.column(column["row_at"], column["reason"], column["late_by_us"], dropped)
            columns.append(rows)
        return pa.table(columns, schema=plan.pane_schema)


def _windows(column: Block) -> pa.Array:
    """The output's column ``window``."""
    return pa.StructArray.from_arrays(
        [_bounds(column["start_us"], column["end_us"]), _bounds(column["end_us"], column["end_us"])],
        names=["start", "end"],
        mask=pa.array(column["windowless"]),
    )


def _panes(column: Block) -> pa.Array:
    """The output's column ``pane``."""
    return pa.StructArray.from_arrays(
        [
            _names(KINDS, column["kind"]),
            _names(TIMINGS, column["timing"]),
            *(pa.array(column[name]) for name in ("index", "on_time_index", "is_first", "is_last")),
        ],
        fields=list(PANE),
    )


def _timestamps(pane_time_us: NDArray[np.int64], end_us: NDArray[np.int64], none: NDArray[np.bool_]) -> pa.Array:
    """The output's column ``timestamp``; null at the end of time and where ``none`` holds."""
    last = end_us - 1
    time = np.where(pane_time_us == NO_VALUE, last, np.minimum(pane_time_us, last))
    return pa.array(time, mask=(time == END_OF_TIME_US - 1) | none).cast(TIMESTAMP)


def _bounds(us: NDArray[np.int64], end_us: NDArray[np.int64]) -> pa.Array:
    """Starts or ends of windows; null for the one that ends at the end of time."""
    return pa.array(us, mask=end_us == END_OF_TIME_US).cast(TIMESTAMP)


def _names(names: tuple[str, ...], number: NDArray[np.int8]) -> pa.Array:
    return pa.array([str(name) for name in names]).take(pa.array(number))
