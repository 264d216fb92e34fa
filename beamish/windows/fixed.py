"""Fixed windows of one size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np

from beamish.durations import Duration, read_duration, read_positive
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
