"""Output rows: panes, retractions and dropped rows."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

import attrs

from beamish.errors import PipelineError
from beamish.markup import html_table


class PaneKind(enum.StrEnum):
    """The kind of an output row."""

    PANE = "PANE"
    """The content of a window when it fires."""
    RETRACTION = "RETRACTION"
    """The retraction of a pane, which it repeats."""
    DROPPED = "DROPPED"
    """A row that is in no pane (``with_dropped``)."""


class PaneTiming(enum.StrEnum):
    """The timing of a pane relative to the end of its window; UNKNOWN only for dropped rows."""

    EARLY = "EARLY"
    ON_TIME = "ON_TIME"
    LATE = "LATE"
    UNKNOWN = "UNKNOWN"


class PaneChange(enum.StrEnum):
    """The effect of a row on the live panes (docs/rules/panes.md#pane-change)."""

    INSERT = "INSERT"
    """A pane, where none is live."""
    UPDATE_BEFORE = "UPDATE_BEFORE"
    """The retraction of a pane; the next row replaces it."""
    UPDATE_AFTER = "UPDATE_AFTER"
    """The pane that replaces another."""
    DELETE = "DELETE"
    """The retraction of a pane without a replacement."""

    @property
    def alone(self) -> PaneChange:
        """The change if the row before or after is left out: the remaining half of an update."""
        halves = {PaneChange.UPDATE_BEFORE: PaneChange.DELETE, PaneChange.UPDATE_AFTER: PaneChange.INSERT}
        return halves.get(self, self)


class DropReason(enum.StrEnum):
    """Why a row was dropped."""

    EXPIRED = "expired"
    """The watermark has passed its window's end by the allowed lateness."""
    WINDOW_FINISHED = "window_finished"
    """The trigger of its window has finished."""
    NULL_EVENT_TIME = "null_event_time"
    """It has no event time."""
    EVENT_TIME_OUT_OF_RANGE = "event_time_out_of_range"
    """Its event time is outside the years 1 to 9999."""
    NULL_NUMBER = "null_number"
    """Its row number, for windows by number, is missing."""
    NULL_KEY = "null_key"
    """A key column is null: of a change of a table, or of a row that can have no match in a join."""
    UNMATCHED_REMOVAL = "unmatched_removal"
    """It retracts a row that its window does not have."""
    DUPLICATE = "duplicate"
    """An earlier row is equal in the columns of deduplicate()."""
    OUT_OF_RETENTION = "out_of_retention"
    """Too late to tell whether it is a duplicate, since its id has expired; or past a join's retention."""
    JOINED_ALREADY = "joined_already"
    """A change that is applied to the table, but too late for rows joined before (a discarding as-of join)."""
    ERROR = "error"
    """A function raised for it, or a sum overflowed, and the pipeline is set to ``on_error("drop")``."""
    SUPERSEDED = "superseded"
    """It is older than the row that its key has (``upserts``)."""


class Window(NamedTuple):
    """``[start, end)`` in aware UTC datetimes; both None for the global window."""

    start: datetime | None
    end: datetime | None


class RowWindow(NamedTuple):
    """``[start, end)`` in row numbers, for count windows."""

    start: int
    end: int


@attrs.frozen
class Pane:
    """An output row in a test: a pane, a retraction, or a dropped row.

    Attributes:
        key: the key columns; empty if the pipeline is not keyed.
        window: start and end, for count windows a ``RowWindow``; also ``pane.start`` and ``pane.end`` if it has bounds; None for
            a row dropped for its event time, which is null or outside the years 1 to 9999.
        values: the accumulations' values; for DROPPED the original row.
        kind: PANE, RETRACTION or DROPPED.
        timing: EARLY, ON_TIME or LATE; UNKNOWN for DROPPED.
        index: number of panes of this window before this one; a retraction repeats that of its pane.
        on_time_index: -1 for EARLY, else the number of panes before it that were not EARLY.
        is_first: no earlier pane of this window.
        is_last: no pane of this window can follow.
        timestamp: an aware UTC datetime, or None (global window without a combiner).
        change: INSERT, UPDATE_BEFORE, UPDATE_AFTER or DELETE; None for DROPPED.
        sequence: its number among the rows of its shard: later rows of a key have greater ones. Ignored by ``==``.
        watermark: the watermark when it was emitted, an aware UTC datetime; None before there is one. Ignored by ``==``.
        reason: for DROPPED, why.
        late_by_us: for DROPPED, the watermark less the event time in microseconds; None without either, or out of range.
        late_by_rows: for DROPPED from a count window, how far the reach was past its number.
        message: for DROPPED with the reason ``error``, the error.
    """

    key: Mapping[str, Any]
    window: Window | RowWindow | None
    values: Mapping[str, Any]
    kind: PaneKind = PaneKind.PANE
    timing: PaneTiming = PaneTiming.UNKNOWN
    index: int = 0
    on_time_index: int = -1
    is_first: bool = False
    is_last: bool = False
    timestamp: datetime | None = None
    change: PaneChange | None = None
    sequence: int = attrs.field(default=0, eq=False)
    watermark: datetime | None = attrs.field(default=None, eq=False)
    reason: DropReason | None = None
    late_by_us: int | None = None
    late_by_rows: int | None = None
    message: str | None = None

    @property
    def start(self) -> datetime:
        """The start of its window, in UTC.

        Raises:
            PipelineError: the window is the global one, or the dropped row has no window.
        """
        return self._bound("start")

    @property
    def end(self) -> datetime:
        """The exclusive end of its window, in UTC.

        Raises:
            PipelineError: as ``start``.
        """
        return self._bound("end")

    def _bound(self, name: Literal["start", "end"]) -> datetime:
        if isinstance(self.window, RowWindow):
            raise PipelineError(
                f"pane.{name}: it is in a count window, whose bounds are row numbers: pane.window.{name}"
            )
        bound: datetime | None = self.window and getattr(self.window, name)
        if bound is None:
            what = "its row is in no window" if self.window is None else "its window is the global window"
            raise PipelineError(f"pane.{name}: {what}, so it has none; pane.window is None or unbounded")
        return bound

    def __str__(self) -> str:
        """One line: kind, key, window, timing and index, values."""
        words = [f"{self.kind:<10}", *(f"{name}={value}" for name, value in self.key.items()), _bounds(self.window)]
        if self.kind is PaneKind.DROPPED:
            words.append(f"{self.reason}")
        else:
            marks = " first" * self.is_first + " last" * self.is_last
            words.append(f"{self.timing} {self.index}{marks}:")
        return " ".join([*words, *(f"{name}={value}" for name, value in self.values.items())])


class PaneList(list[Pane]):
    """Panes in the order of emission: a list that is shown in a notebook as a table."""

    def _repr_html_(self) -> str:
        keys = list(dict.fromkeys(name for pane in self for name in pane.key))
        values = list(dict.fromkeys(name for pane in self for name in pane.values))
        rows = [
            [
                pane.kind,
                *(pane.key.get(name, "") for name in keys),
                _bounds(pane.window),
                *(pane.values.get(name, "") for name in values),
                *((pane.reason, "") if pane.kind is PaneKind.DROPPED else (pane.timing, pane.index)),
                "last" * pane.is_last,
            ]
            for pane in self
        ]
        return html_table(["", *keys, "window", *values, "timing", "index", ""], rows)


def _bounds(window: Window | RowWindow | None) -> str:
    if window is None:
        return "[no window)"
    if isinstance(window, RowWindow):
        return f"[{window.start}, {window.end})"
    if window.start is None or window.end is None:
        return "[all of time)"
    start, end = window.start.replace(tzinfo=None), window.end.replace(tzinfo=None)
    return f"[{start}, {end.time() if end.date() == start.date() else end})"
