"""Updates: the output of a shard's step as columns of panes, which become numbered output rows at the end (``Operator.rows``).

A suppress applies them in order. In them, joins are not yet exploded, discarding panes are still accumulators, and a window that
merged away is listed in the step in which it merged.

Output rows in columns: panes, retractions, dropped rows, merged windows; and their structs.

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

Sequence numbers of output rows within their shard, and the watermark at which they are emitted. A shard emits its rows in order, and a key
always belongs to the same shard. So the runner numbers the rows of each shard across steps, and the rows of a key stay in order
(docs/rules/panes.md#pane-sequence). The watermark is the one that the stage forwards (docs/rules/panes.md#pane-watermark).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.instants import EARLIEST_US, END_OF_TIME_US, LATEST_US, NO_TIME_US
from beamish.kernels.buffers import NO_ENTRY, NO_VALUE, Flags, Ints
from beamish.pane import PaneChange, PaneKind, PaneTiming

TIMESTAMP = pa.timestamp("us", tz="UTC")
WINDOW = pa.struct([("start", TIMESTAMP), ("end", TIMESTAMP)])
ROW_WINDOW = pa.struct([("start", pa.int64()), ("end", pa.int64())])
"""A count window, by row numbers."""
PANE = pa.struct(
    [
        ("kind", pa.string()),
        ("timing", pa.string()),
        ("index", pa.int64()),
        ("on_time_index", pa.int64()),
        ("is_first", pa.bool_()),
        ("is_last", pa.bool_()),
        ("change", pa.string()),
        ("sequence", pa.int64()),
        ("watermark", TIMESTAMP),
    ]
)


def dropped_type(row: pa.DataType, *, message: bool = False) -> pa.DataType:
    """The column ``dropped``, for dropped rows of this type; ``message``: whether it has the error message."""
    said = [("message", pa.string())] if message else []
    return pa.struct([("reason", pa.string()), ("late_by", pa.int64()), *said, ("row", row)])


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
    """The output's column ``pane``; ``sequence`` and ``watermark`` are set by the runner (``updates.py``)."""
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


@attrs.frozen(eq=False)
class Updates:
    """The output of a step, or a part of it, in order.

    Attributes:
        columns: n updates (the columns of a block), with their timestamps as ``pane_time_us``.
        keys: their key columns, n rows.
        values: the other columns: the output's, or accumulators for discarding panes; n rows, or no columns if all are null.
        dropped: n structs, the output's column ``dropped``; None: null.
        since_us: int64[n], microseconds since the epoch: since when each counts as buffered; None: since its timestamp.
    """

    columns: Block
    keys: pa.Table
    values: pa.Table
    dropped: pa.Array | None = None
    since_us: Ints | None = None

    def __len__(self) -> int:
        return len(self.columns["kind"])

    @classmethod
    def of_rows(cls, rows: pa.Table, time_us: Ints, keys: Sequence[str] = ()) -> Updates:
        """Rows without windows, as one pane each, with their timestamps; ``keys``: their key columns, for a suppress."""
        block = make_block(len(time_us), windowless=True, is_first=True, is_last=True, pane_time_us=time_us)
        return cls(block, rows.select(keys), rows.drop_columns(keys))

    def where(self, wanted: Flags) -> Updates:
        """A subset: bool, one per update."""
        if wanted.all():
            return self
        at = pa.array(np.flatnonzero(wanted))
        return Updates(
            {name: column[wanted] for name, column in self.columns.items()},
            self.keys.take(at)
            if self.keys.num_columns
            else self.keys.slice(0, len(at)),  # else it would have zero rows
            self.values.take(at),
            None if self.dropped is None else self.dropped.take(at),
            None if self.since_us is None else self.since_us[wanted],
        )

    def rows(self, schema: pa.Schema) -> pa.Table:
        """Panes, retractions and dropped rows as output rows with this schema."""
        columns, own = self.columns, dict[str, Any]()
        for table in (self.keys, self.values):
            own |= dict(zip(table.schema.names, table.columns, strict=True))
        own["window"] = window_column(columns, schema.field("window").type)
        own["pane"] = pane_column(columns)
        own["timestamp"] = timestamp_column(columns["pane_time_us"], columns["kind"] == DROPPED_KIND)
        if self.dropped is not None:
            own["dropped"] = self.dropped
        each = [own[field.name] if field.name in own else pa.nulls(len(self), field.type) for field in schema]
        return pa.table(each, schema=schema)


def number_rows(rows: pa.Table, first: int, watermark_us: int | None) -> pa.Table:
    """Number the output rows of one step of a shard, and add the watermark.

    Args:
        rows: of output.
        first: the number of the first row.
        watermark_us: after the step, microseconds, or None.
    """
    at = rows.schema.get_field_index("pane")
    field, chunks, number = rows.schema.field(at), [], first
    of_sequence, of_watermark = (field.type.get_field_index(name) for name in ("sequence", "watermark"))
    # At the end of time it is the latest timestamp.
    stood_us = None if watermark_us is None else min(max(watermark_us, EARLIEST_US), LATEST_US)
    stood = pa.scalar(stood_us, pa.int64()).cast(TIMESTAMP)
    for chunk in rows.column(at).chunks:
        columns = [chunk.field(i) for i in range(chunk.type.num_fields)]
        columns[of_sequence] = pa.array(np.arange(number, number + len(chunk), dtype=np.int64))
        columns[of_watermark] = pa.repeat(stood, len(chunk))
        chunks.append(pa.StructArray.from_arrays(columns, fields=list(field.type)))
        number += len(chunk)
    return rows.set_column(at, field, pa.chunked_array(chunks, field.type))
