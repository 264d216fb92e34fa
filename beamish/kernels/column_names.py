"""Names of columns: those that beamish reserves, names in another case, and names quoted for Spark's SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

PREFIX = "__beamish_"
"""User columns with this prefix are rejected; all other names are allowed, ``__op`` and ``__sign`` among them."""

EVENT_TIME = PREFIX + "event_time_us"
"""A row's event time (int64, microseconds; null: missing)."""
NO_EVENT_TIME = PREFIX + "no_event_time"
"""In place of a source's event-time column: its rows have none, since windows count rows."""
INPUT = PREFIX + "input"
"""The input number of a row of a merge, from 0 (int8)."""
NUMBER = PREFIX + "number"
"""The row number within its shard, which identifies it in other windows (int64)."""
KEPT_BY = PREFIX + "kept_by_us"
"""The event time for retention in a join over count windows (int64, microseconds; the end of time: none)."""
"""Whether a row of a join never has a match, since its key has a null (bool)."""
KEPT_ROWS = PREFIX + "rows_kept"
"""In state: the rows of a window, where the removal of a dropped row must be recognised."""
SIGN = PREFIX + "sign"
"""1 for a row, -1 for the retraction of an equal one (int8)."""
WINDOW_START, WINDOW_END = PREFIX + "window_start_us", PREFIX + "window_end_us"
"""The window of a pane that is read as a row (int64, microseconds)."""
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
"""False for script rows that only carry a watermark (boolean)."""
REPORT = PREFIX + "report_us"
"""The watermark that a row advances its source to (int64, microseconds)."""
UPSTREAM_WATERMARK = PREFIX + "upstream_watermark_us"
"""Beside a stage's panes: its watermark, for the next stage; null for panes (int64, microseconds)."""
BATCH = PREFIX + "batch"
"""The micro-batch of a script's row (int64)."""


def has_no_event_time(event_time: object) -> bool:
    """Whether the declared event time of a source (a name or a Spark expression) is the marker of none."""
    return isinstance(event_time, str) and event_time == NO_EVENT_TIME


def is_reserved(name: str) -> bool:
    """Whether a column name is reserved."""
    return name.lower().startswith(PREFIX)


def respelled(names: Sequence[str], asked: Iterable[str]) -> dict[str, str]:
    """Renames that give columns the spelling in which they are requested.

    Args:
        names: of the existing columns.
        asked: the requested names.

    Returns:
        the new name by the old one, for columns requested only in another spelling.
    """
    wanted, result = set(asked), {}
    for name in sorted(wanted - set(names)):
        alike = [other for other in names if other.lower() == name.lower()]
        if len(alike) == 1 and alike[0] not in wanted and alike[0] not in result:
            result[alike[0]] = name
    return result


def quoted(name: str) -> str:
    """Quote any name for Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"
