"""The columns of panes."""

from __future__ import annotations

import pyarrow as pa

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
