"""Output rows in columns: panes, retractions, dropped rows, merged windows; and their structs.

columns of a block (one entry per row of output; ``_us``: int64, microseconds since the epoch):
    key_at              int64: its key, in the window table's pool
    start_us, end_us    its window; for count windows row numbers
    windowless          bool: without a window
    into_start_us, into_end_us    for a window that merged away: the window it merged into
    kind                int8: PANE_KIND, RETRACTION_KIND, DROPPED_KIND; MERGED_KIND: a window that merged away, for a suppress
    timing              int8: EARLY, ON_TIME, LATE or UNKNOWN
    index, on_time_index, is_first, is_last    int64, int64, bool, bool: the pane's
    replaces            bool: a pane that replaces another one, or its retraction right before it
    has_rows            bool: with discarding panes, whether it has new rows
    pane_time_us        the pane's timestamp with a combiner; NO_VALUE: the end of its window
    values_at           int64: its values, in the window table's pool; NO_ENTRY for a dropped row
    dropped_at          int64: the position of a dropped row in the list (drops.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.schemas import PANE, ROW_WINDOW, TIMESTAMP, WINDOW
from beamish.instants import END_OF_TIME_US, NO_TIME_US
from beamish.kernels.arrays import NO_ENTRY, NO_VALUE, Flags, Ints
from beamish.pane import PaneChange, PaneKind, PaneTiming

Block = dict[str, NDArray[Any]]

PANE_KIND, RETRACTION_KIND, DROPPED_KIND, MERGED_KIND = range(4)
KINDS = (PaneKind.PANE, PaneKind.RETRACTION, PaneKind.DROPPED)
TIMINGS = (PaneTiming.EARLY, PaneTiming.ON_TIME, PaneTiming.LATE, PaneTiming.UNKNOWN)
EARLY, ON_TIME, LATE, UNKNOWN = range(4)
_CHANGES = (PaneChange.INSERT, PaneChange.UPDATE_AFTER, PaneChange.DELETE, PaneChange.UPDATE_BEFORE)
"""``pane.change`` of a pane, and of one that ``replaces``; then of a retraction (docs/rules/panes.md#pane-change)."""

COLUMNS: dict[str, tuple[str, Any]] = {
    "key_at": ("int64", NO_ENTRY),
    "start_us": ("int64", 0),
    "end_us": ("int64", 0),
    "windowless": ("bool", False),
    "into_start_us": ("int64", 0),
    "into_end_us": ("int64", 0),
    "kind": ("int8", PANE_KIND),
    "timing": ("int8", UNKNOWN),
    "index": ("int64", 0),
    "on_time_index": ("int64", -1),
    "is_first": ("bool", False),
    "is_last": ("bool", False),
    "replaces": ("bool", False),
    "has_rows": ("bool", True),
    "pane_time_us": ("int64", NO_VALUE),
    "values_at": ("int64", NO_ENTRY),
    "dropped_at": ("int64", NO_ENTRY),
}


def make_block(rows: int, **columns: Any) -> Block:
    """A block of ``rows`` rows; omitted columns have their default value."""
    usual = {name: np.full(rows, value, dtype) for name, (dtype, value) in COLUMNS.items()}
    return {**usual, **{name: np.broadcast_to(column, rows) for name, column in columns.items()}}


def sort_blocks(blocks: Sequence[Block], place: NDArray[np.int64]) -> Block:
    """Blocks as one, stably sorted by ``place`` (int64, one per row)."""
    order = np.argsort(place, kind="stable")
    return {name: np.concatenate([block[name] for block in blocks])[order] for name in COLUMNS}


def window_column(column: Block, type_: pa.DataType = WINDOW) -> pa.Array:
    """The output's column ``window``: of time, or of row numbers."""
    if type_ == ROW_WINDOW:
        bounds = [pa.array(column[name]) for name in ("start_us", "end_us")]
        return pa.StructArray.from_arrays(bounds, fields=list(type_), mask=pa.array(column["windowless"]))
    return pa.StructArray.from_arrays(
        [_bounds(column["start_us"], column["end_us"]), _bounds(column["end_us"], column["end_us"])],
        names=["start", "end"],
        mask=pa.array(column["windowless"]),
    )


def pane_column(column: Block) -> pa.Array:
    """The output's column ``pane``; ``sequence`` and ``watermark`` are set by the runner (``output_sequence.py``)."""
    return pa.StructArray.from_arrays(
        [
            _names(KINDS, column["kind"]),
            _names(TIMINGS, column["timing"]),
            *(pa.array(column[name]) for name in ("index", "on_time_index", "is_first", "is_last")),
            _changes(column["kind"], column["replaces"]),
            pa.array(np.zeros(len(column["kind"]), dtype=np.int64)),
            pa.nulls(len(column["kind"]), TIMESTAMP),
        ],
        fields=list(PANE),
    )


def timestamp_column(time_us: Ints, none: Flags) -> pa.Array:
    """The output's column ``timestamp``, from int64 microseconds; null at the end of time and where ``none`` is set."""
    return pa.array(time_us, mask=(time_us == NO_TIME_US) | none).cast(TIMESTAMP)


def _bounds(us: Ints, end_us: Ints) -> pa.Array:
    """Starts or ends of windows; null at the end of time."""
    return pa.array(us, mask=end_us == END_OF_TIME_US).cast(TIMESTAMP)


def _changes(kind: NDArray[np.int8], replaces: Flags) -> pa.Array:
    """The ``change`` of rows; null for dropped ones."""
    dropped = kind == DROPPED_KIND
    code = pa.array(kind * 2 + replaces, mask=dropped if dropped.any() else None)
    return pa.array([str(change) for change in _CHANGES]).take(code)


def _names(names: tuple[str, ...], number: NDArray[np.int8]) -> pa.Array:
    return pa.array([str(name) for name in names]).take(pa.array(number))
