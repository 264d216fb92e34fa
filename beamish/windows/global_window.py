"""The global window: all of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np

from beamish.instants import END_OF_TIME_US
from beamish.windows.option import Bounds, Times, WindowOption


@attrs.frozen
class GlobalWindow(WindowOption):
    """One window for all rows, which ends at the end of time; use a trigger that does not wait for that."""

    def describe(self) -> str:
        return "one, all of time; it never ends while the stream runs"

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
