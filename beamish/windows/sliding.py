"""Sliding windows: of one size, a new one every period."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import Any

import attrs
import numpy as np

from beamish.durations import Duration, duration, positive
from beamish.windows.option import Bounds, Times, WindowOption


def _read_size(value: Any) -> Duration:
    return positive("SlidingWindows(size)", value)


def _read_period(value: Any) -> Duration:
    return positive("SlidingWindows(period)", value)


def _read_offset(value: Any) -> Duration:
    return duration("SlidingWindows(offset)", value)


@attrs.frozen
class SlidingWindows(WindowOption):
    """Windows of ``size`` that start every ``period``; a row is in each that holds its timestamp.

    Args:
        size: the length of a window, above 0.
        period: the time from one start to the next, above 0; a period larger than the size samples: rows
            between windows are in none, and are not listed as dropped.
        offset: where windows start, counted from 1970-01-01 00:00 UTC; reduced modulo the period.

    Raises:
        OptionError: a size or period that is not above 0.
    """

    size: Duration = attrs.field(converter=_read_size)
    period: Duration = attrs.field(converter=_read_period)
    offset: Duration = attrs.field(default=Duration(0), converter=_read_offset)

    @property
    def period_us(self) -> int:
        return int(self.period)

    @property
    def slice_us(self) -> int:
        """The length of the slices that every window is a whole number of; slices start at the offset."""
        return gcd(int(self.size), int(self.period))

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        start = timestamp_us - (timestamp_us - self.offset) % self.period
        while start + self.size > timestamp_us:
            yield start, start + self.size
            start -= self.period

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        size, period = int(self.size), int(self.period)
        into_period = (timestamps_us - int(self.offset) % period) % period
        windows = np.maximum(0, (size - into_period + period - 1) // period)
        row = np.repeat(np.arange(len(windows), dtype=np.int64), windows)
        before = np.repeat(np.cumsum(windows) - windows, windows)
        start = (timestamps_us - into_period)[row] - (np.arange(len(row), dtype=np.int64) - before) * period
        return row, start, start + size
