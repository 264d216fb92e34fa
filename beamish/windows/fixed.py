"""Fixed windows: the time line cut into pieces of one size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np

from beamish.durations import Duration, duration, positive
from beamish.windows.option import Bounds, Times, WindowOption


def _read_size(value: Any) -> Duration:
    return positive("FixedWindows(size)", value)


def _read_offset(value: Any) -> Duration:
    return duration("FixedWindows(offset)", value)


@attrs.frozen
class FixedWindows(WindowOption):
    """Windows of ``size``, one after the other; a row is in one (Beam guide, "Fixed time windows").

    Args:
        size: the length of a window, above 0.
        offset: where windows start, counted from 1970-01-01 00:00 UTC; reduced modulo the size.

    Raises:
        OptionError: a size that is not above 0.
    """

    size: Duration = attrs.field(converter=_read_size)
    offset: Duration = attrs.field(default=Duration(0), converter=_read_offset)

    @property
    def period_us(self) -> int:
        return int(self.size)

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        start = timestamp_us - (timestamp_us - self.offset) % self.size
        yield start, start + self.size

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        start = timestamps_us - (timestamps_us - int(self.offset) % int(self.size)) % int(self.size)
        return np.arange(len(start), dtype=np.int64), start, start + int(self.size)
