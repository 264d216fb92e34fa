"""Windows of time: fixed, sliding, anchored, sessions, all of time; and those that panes bring along."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import Any, ClassVar, Literal

import attrs
import numpy as np

from beamish.costs import check_span, check_windows_per_row
from beamish.durations import Duration, read_duration, read_not_negative, read_positive
from beamish.errors import OptionError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.column_names import WINDOW_END, WINDOW_START
from beamish.windows.option import Bounds, Times, WindowOption


@attrs.frozen
class FixedWindows(WindowOption):
    """Consecutive windows of ``size``; a row is in one (Beam guide, "Fixed time windows").

    Args:
        size: the length of a window, above 0.
        offset: where windows start, counted from 1970-01-01 00:00 UTC; reduced modulo the size.

    Raises:
        OptionError: a size that is not above 0.

    Example:
        >>> import beamish as bm
        >>> bm.FixedWindows("1 day", offset="6 hours").describe()
        'fixed, 1 day long, shifted by 6 hours'
    """

    size: Duration = attrs.field(converter=read_positive)
    offset: Duration = attrs.field(default=Duration(0), converter=read_duration)

    def describe(self) -> str:
        return f"fixed, {self.size} long" + (f", shifted by {self.offset}" if self.offset else "")

    @property
    def overlaps(self) -> bool:
        return False

    @property
    def period_us(self) -> int:
        return self.size.us

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        start = timestamp_us - (timestamp_us - self.offset.us) % self.size.us
        yield start, start + self.size.us

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        start = self.slices(timestamps_us)
        return np.arange(len(start), dtype=np.int64), start, start + self.size.us

    def slices(self, timestamps_us: Times) -> Times:
        offset = self.offset.us % self.size.us
        return (timestamps_us - offset) // self.size.us * self.size.us + offset


@attrs.frozen
class SlidingWindows(WindowOption):
    """Windows of ``size`` that start every ``period``; a row is in each that contains its timestamp.

    Args:
        size: the length of a window, above 0.
        period: the time from one start to the next, above 0; with a period above the size windows sample: rows
            between windows are in none, and are not listed as dropped.
        offset: where windows start, counted from 1970-01-01 00:00 UTC; reduced modulo the period.

    Raises:
        OptionError: a size or period that is not above 0, or a row would be in more than a million windows.

    Example:
        >>> import beamish as bm
        >>> bm.SlidingWindows("10 minutes", "1 minute").describe()
        'sliding, 10 minutes long, one every 1 minute; a row is in each that contains it'
    """

    size: Duration = attrs.field(converter=read_positive)
    period: Duration = attrs.field(converter=read_positive)
    offset: Duration = attrs.field(default=Duration(0), converter=read_duration)

    def __attrs_post_init__(self) -> None:
        check_windows_per_row(f"SlidingWindows({self.size!r}, {self.period!r})", self.size.us, self.period.us)

    def describe(self) -> str:
        sampled = self.period > self.size
        rule = "sampled: rows between them are in none" if sampled else "a row is in each that contains it"
        return f"sliding, {self.size} long, one every {self.period}; {rule}"

    @property
    def overlaps(self) -> bool:
        return self.period < self.size

    @property
    def period_us(self) -> int:
        return self.period.us

    @property
    def slice_us(self) -> int:
        """The greatest slice length that divides every window; slices start at the offset."""
        return gcd(self.size.us, self.period.us)

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        start = timestamp_us - (timestamp_us - self.offset.us) % self.period.us
        while start + self.size.us > timestamp_us:
            yield start, start + self.size.us
            start -= self.period.us

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        return slide(timestamps_us, self.size.us, self.period.us, self.offset.us)

    def slices(self, timestamps_us: Times) -> Times:
        return timestamps_us - (timestamps_us - self.offset.us % self.slice_us) % self.slice_us


def slide(places: Times, size: int, period: int, offset: int) -> tuple[Times, Times, Times]:
    """The windows that contain each position, starting every ``period`` from ``offset``.

    Args:
        places: int64, one per row: microseconds since the epoch, or row numbers.
        size: the length of a window.
        period: from one start to the next.
        offset: a position at which a window starts.

    Returns:
        row (index into ``places``), start and end: int64, one entry for each (row, window), by row.
    """
    into_period = (places - offset % period) % period
    windows = np.maximum(0, (size - into_period + period - 1) // period)
    row = np.repeat(np.arange(len(windows), dtype=np.int64), windows)
    before = np.repeat(np.cumsum(windows) - windows, windows)
    start = (places - into_period)[row] - (np.arange(len(row), dtype=np.int64) - before) * period
    return row, start, start + size


@attrs.frozen
class CumulativeWindows(WindowOption):
    """Windows that start every ``size`` and are one ``step`` long, two steps and so on up to ``size`` (Flink's ``CUMULATE``).

    A row is in each that contains its timestamp: of a day by hours, the row at 01:30 is in those that end at 02:00, 03:00 and so on
    up to 24:00. A window is emitted when it ends, as any other.

    Args:
        size: the length of the longest windows, above 0; a multiple of the step.
        step: the length of the shortest windows, and from one end to the next, above 0.
        offset: where windows start, counted from 1970-01-01 00:00 UTC; reduced modulo the size.

    Raises:
        OptionError: a size or step that is not above 0, a size that is not a multiple of the step, or a row would be in more than a
            million windows.

    Example:
        >>> import beamish as bm
        >>> bm.CumulativeWindows("1 day", "1 hour").describe()
        'cumulative, one every 1 day, which grows by 1 hour up to 1 day; a row is in each that contains it'
    """

    size: Duration = attrs.field(converter=read_positive)
    step: Duration = attrs.field(converter=read_positive)
    offset: Duration = attrs.field(default=Duration(0), converter=read_duration)

    def __attrs_post_init__(self) -> None:
        if self.size.us % self.step.us:
            nearest = Duration(max(1, round(self.size.us / self.step.us)) * self.step.us)
            raise OptionError(
                f"CumulativeWindows(size={self.size!r}, step={self.step!r}): the size must be a multiple of the step, so that the "
                f"longest window ends where the next one starts; use size={nearest!r}"
            )
        check_windows_per_row(f"CumulativeWindows({self.size!r}, {self.step!r})", self.size.us, self.step.us)

    def describe(self) -> str:
        grows = f"which grows by {self.step} up to {self.size}"
        return f"cumulative, one every {self.size}, {grows}; a row is in each that contains it"

    @property
    def overlaps(self) -> bool:
        return self.step < self.size

    @property
    def period_us(self) -> int:
        return self.step.us

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        into = (timestamp_us - self.offset.us) % self.size.us
        start = timestamp_us - into
        for length in range(into // self.step.us * self.step.us, self.size.us, self.step.us):
            yield start, start + length + self.step.us

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        into = (timestamps_us - self.offset.us % self.size.us) % self.size.us
        before = into // self.step.us
        windows = self.size.us // self.step.us - before
        row = np.repeat(np.arange(len(windows), dtype=np.int64), windows)
        further = np.arange(len(row), dtype=np.int64) - np.repeat(np.cumsum(windows) - windows, windows)
        start = (timestamps_us - into)[row]
        return row, start, start + (before[row] + further + 1) * self.step.us

    def slices(self, timestamps_us: Times) -> Times:
        return timestamps_us - (timestamps_us - self.offset.us % self.step.us) % self.step.us


@attrs.frozen
class AnchoredWindows(WindowOption):
    """The windows of a key whose rows differ: one that ends at each row, and one that starts just after it.

    A row at ``ts`` anchors ``[ts - difference, ts]`` and, if it holds a row, the window of the same length that starts one
    microsecond after ``ts``. So rows at most ``difference`` apart share a window (Kafka Streams' ``SlidingWindows``). Windows with
    the same bounds are one. A window has all rows of its key between its bounds, also those that came before it was anchored.

    Args:
        difference: the greatest difference in time of two rows of a window, at least 0.

    Raises:
        OptionError: a negative difference.

    Example:
        >>> import beamish as bm
        >>> bm.AnchoredWindows("10 minutes").describe()
        'anchored at rows: one ends at each row and one starts after it, each with the rows of 10 minutes'
    """

    difference: Duration = attrs.field(converter=read_not_negative)

    def describe(self) -> str:
        return (
            f"anchored at rows: one ends at each row and one starts after it, each with the rows of {self.difference}"
        )

    @property
    def length_us(self) -> int:
        """The length of a half-open window, microseconds: both of its bounds are inside."""
        return self.difference.us + 1

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        """The window that ends at a row; the others depend on other rows (kinds/window/parts/anchors.py)."""
        yield timestamp_us - self.difference.us, timestamp_us + 1

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        return np.arange(len(timestamps_us), dtype=np.int64), timestamps_us - self.difference.us, timestamps_us + 1


def _check_late_rows(option: Any, field: attrs.Attribute[Any], value: object) -> None:
    if value not in ("own_window", "session"):
        raise OptionError(
            f"{type(option).__name__}({field.name}={value!r}): must be 'own_window', which judges a late row by its own window, or "
            "'session', by the session that it joins"
        )


@attrs.frozen(repr=False)
class Sessions(WindowOption):
    """A row starts as ``[ts, ts + gap)`` of its key; overlapping windows of a key merge into their span.

    Windows that only touch stay apart (Beam guide, "Session windows"; Spark's ``session_window`` merges them).

    Args:
        gap: the inactivity after which a session ends, above 0.
        late_rows: "own_window": a row whose own ``[ts, ts + gap)`` has expired is dropped, as in Beam; "session": unless it joins a
            session that has not, as in Kafka Streams and Flink.

    Raises:
        OptionError: a gap that is not above 0; or an invalid ``late_rows``.

    Example:
        >>> import beamish as bm
        >>> bm.Sessions("30 minutes").describe()
        'sessions: rows of a key less than 30 minutes apart; they grow and merge as rows arrive'
    """

    gap: Duration = attrs.field(converter=read_positive)
    late_rows: Literal["own_window", "session"] = attrs.field(
        default="own_window", validator=_check_late_rows, kw_only=True
    )
    merging: ClassVar[bool] = True

    def __attrs_post_init__(self) -> None:
        check_span(
            "Sessions(gap)", self.gap, "a session ends, and its state is dropped, only this long after its last row"
        )

    def __repr__(self) -> str:
        late = f", late_rows={self.late_rows!r}" if self.late_by_merged else ""
        return f"{type(self).__name__}(gap={self.gap!r}{late})"

    def describe(self) -> str:
        late = "; a row expires with the session that it joins" if self.late_by_merged else ""
        return f"sessions: rows of a key less than {self.gap} apart; they grow and merge as rows arrive{late}"

    @property
    def in_state(self) -> Sessions:
        return attrs.evolve(self, late_rows="own_window")

    @property
    def late_by_merged(self) -> bool:
        return self.late_rows == "session"

    @property
    def overlaps(self) -> bool:
        return False

    @property
    def period_us(self) -> int:
        return self.gap.us

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        yield timestamp_us, timestamp_us + self.gap.us

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        return np.arange(len(timestamps_us), dtype=np.int64), timestamps_us, timestamps_us + self.gap.us


@attrs.frozen
class GlobalWindow(WindowOption):
    """One window for all rows, which ends at the end of time; use a trigger that does not wait for that."""

    def describe(self) -> str:
        return "one global window; it never ends while the stream runs"

    @property
    def overlaps(self) -> bool:
        return False

    @property
    def is_all_of_time(self) -> bool:
        return True

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        yield 0, END_OF_TIME_US

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        n = len(timestamps_us)
        return np.arange(n, dtype=np.int64), np.zeros(n, np.int64), np.full(n, END_OF_TIME_US, np.int64)

    def slices(self, timestamps_us: Times) -> Times:
        return np.zeros(len(timestamps_us), dtype=np.int64)


@attrs.frozen
class InheritedWindows(WindowOption):
    """The default window option of a later stage: each pane stays in its window.

    Args:
        of: the window option of the stage before.
    """

    of: WindowOption

    columns: ClassVar[Sequence[str]] = (WINDOW_START, WINDOW_END)  # type: ignore[misc]

    def describe(self) -> str:
        return f"inherited from the panes: {self.of.describe()}"

    @property
    def in_state(self) -> InheritedWindows:
        return attrs.evolve(self, of=self.of.in_state)

    @property
    def origin(self) -> WindowOption:
        return self.of.origin

    @property
    def overlaps(self) -> bool:
        return False

    @property
    def holds_its_rows(self) -> bool:
        return self.of.holds_its_rows

    @property
    def is_all_of_time(self) -> bool:
        return self.of.is_all_of_time

    @property
    def period_us(self) -> int | None:
        return self.of.period_us

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        start, end = (np.asarray(column, dtype=np.int64) for column in columns)
        return np.arange(len(start), dtype=np.int64), start, end
