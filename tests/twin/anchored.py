"""Windows anchored at rows, from their definition: all windows of all rows of a key, before a bundle and after it.

See rules/windows.md#anchored-windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import beamish as bm
from beamish.windows.option import END_OF_TIME_US
from tests.twin.accumulations import Row
from tests.twin.windows import Bounds


class Anchors:
    """The rows of a stage, by key, however old."""

    def __init__(self, window: bm.AnchoredWindows) -> None:
        self.difference = window.difference.us
        self.rows: dict[int, list[Row]] = {}

    def last_of(self, row: Row) -> Bounds:
        """The last window that may have a row: it starts at it."""
        return half_open(row.time_us, row.time_us + self.difference)

    def spread(self, key: object, new: Sequence[Row]) -> list[tuple[Bounds, Row]]:
        """New rows in all their windows; windows that were not there before take the old ones too."""
        old = self.rows.setdefault(id(key), [])
        before, after = self.windows(old), self.windows([*old, *new])
        now = [row._replace(bundle=new[0].bundle) for row in old]  # they arrive with this bundle
        pairs = [
            (half_open(start, end), row)
            for start, end in sorted(after)
            for row in (new if (start, end) in before else [*now, *new])
            if start <= row.time_us <= end
        ]
        old += new
        return pairs

    def windows(self, rows: Iterable[Row]) -> set[Bounds]:
        """[t - d, t] of each row, and [t + 1, t + 1 + d] if a row is in it; bounds included."""
        times = {row.time_us for row in rows}
        ends = {(time - self.difference, time) for time in times}
        begins = {(time + 1, time + 1 + self.difference) for time in times}
        return ends | {(start, end) for start, end in begins if any(start <= time <= end for time in times)}


def half_open(start: int, end: int) -> Bounds:
    return start, min(end + 1, END_OF_TIME_US)
