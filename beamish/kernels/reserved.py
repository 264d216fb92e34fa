"""Names of columns that beamish adds to a user's on the way. All begin with a prefix that users are refused."""

from __future__ import annotations

PREFIX = "__beamish_"
"""A user's column that begins with it is refused; all other names are the user's, ``__op`` and ``__sign`` among them."""

EVENT_TIME = PREFIX + "event_time_us"
"""A row's event time (int64, microseconds; null: it has none)."""
NO_EVENT_TIME = PREFIX + "no_event_time"
"""In place of the name of a source's event time: its rows have none, since windows are of rows."""
INPUT = PREFIX + "input"
"""The number of the input that a row of a merge comes from, from 0 (int8)."""
NUMBER = PREFIX + "number"
"""The number of a row in its shard, by which it is known again in other windows (int64)."""
KEPT_BY = PREFIX + "kept_by_us"
"""The event time of a row, by which a join in windows of rows keeps it (int64, microseconds; the end of time: it has none)."""
KEPT_ROWS = PREFIX + "rows_kept"
"""In a state: the rows that a window holds, where the removal of one that was dropped must be known."""
SIGN = PREFIX + "sign"
"""1 for a row, -1 for the removal of an equal one (int8)."""
WINDOW_START, WINDOW_END = PREFIX + "window_start_us", PREFIX + "window_end_us"
"""The window of a pane that is taken as a row (int64, microseconds)."""
SLICE = PREFIX + "slice_us"
"""The start of a slice of pre-aggregated rows (int64, microseconds)."""
ROWS = PREFIX + "rows"
"""The number of rows in a slice (int64)."""
FIRST, LAST = PREFIX + "first_us", PREFIX + "last_us"
"""The earliest and latest event time in a slice (int64, microseconds)."""
WATERMARK = PREFIX + "watermark"
"""The timestamp that Spark's ``withWatermark`` follows."""
EVENT_TIME_EXPRESSION = PREFIX + "event_time"
"""The event time, where the pipeline gives an expression for it (timestamp)."""
IS_ROW = PREFIX + "is_row"
"""False for rows of a script that only carry a watermark (boolean)."""
REPORT = PREFIX + "report_us"
"""How far a row takes the watermark of its source (int64, microseconds)."""
UPSTREAM_WATERMARK = PREFIX + "upstream_watermark_us"
"""Beside a stage's panes: its watermark, for the stage after it; null for panes (int64, microseconds)."""
BATCH = PREFIX + "batch"
"""The micro-batch of a script's row (int64)."""


def has_no_event_time(event_time: object) -> bool:
    """Whether what is said of a source's event time (a name, or an expression of Spark's) is that there is none."""
    return isinstance(event_time, str) and event_time == NO_EVENT_TIME


def is_reserved(name: str) -> bool:
    """Whether users may not have a column of this name."""
    return name.lower().startswith(PREFIX)
