"""Sliding windows of one size, starting every period."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import Any

import attrs
import numpy as np

from beamish.costs import check_windows_per_row
from beamish.durations import Duration, read_duration, read_positive
from beamish.windows.option import Bounds, Times, WindowOption


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
        'sliding, 10 minutes long, a new one every 1 minute; a row is in every one that holds it'
    """

    size: Duration = attrs.field(converter=read_positive)
    period: Duration = attrs.field(converter=read_positive)
    offset: Duration = attrs.field(default=Duration(0), converter=read_duration)

    def __attrs_post_init__(self) -> None:
        check_windows_per_row(f"SlidingWindows({self.size!r}, {self.period!r})", self.size.us, self.period.us)

    def describe(self) -> str:
        sampled = self.period > self.size
        rule = "sampled: rows between them are in none" if sampled else "a row is in every one that holds it"
        return f"sliding, {self.size} long, a new one every {self.period}; {rule}"

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
