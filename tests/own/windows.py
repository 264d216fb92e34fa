"""Window options as users write them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

import beamish as bm
from beamish.windows.option import Bounds
from tests.seconds import S


class PlainWindows(bm.WindowOption):
    """A user's windows, of a plain class."""

    def __init__(self, seconds):
        self.size = seconds * S

    def assign(self, timestamp_us, *values):
        start = timestamp_us // self.size * self.size
        yield start, start + self.size


@attrs.frozen
class UntilMinute(bm.WindowOption):
    """A user's windows: from the row to the end of its 10 seconds; every other row is in none."""

    def assign(self, timestamp_us, *values):
        end = (timestamp_us // (10 * S) + 1) * 10 * S
        if timestamp_us // S % 4:
            yield timestamp_us, end


@attrs.frozen
class OwnGap(bm.WindowOption):
    """A user's sessions whose gap comes with the row."""

    merging = True
    columns = ("score",)

    def assign(self, timestamp_us, *values):
        (score,) = values
        yield timestamp_us, timestamp_us + (1 + abs(score or 0)) * S


@attrs.frozen
class OfABlock(bm.WindowOption):
    """A user's merging windows: all that start in the same 20 seconds become their span, overlapping or not."""

    merging = True

    def assign(self, timestamp_us, *values):
        yield timestamp_us, timestamp_us + 5 * S

    def merge(self, windows: Sequence[Bounds]):
        blocks: dict[int, list[Bounds]] = {}
        for window in windows:
            blocks.setdefault(window[0] // (20 * S), []).append(window)
        for members in blocks.values():
            yield members, (members[0][0], max(end for _, end in members))


@attrs.frozen
class Absorbed(bm.WindowOption):
    """A user's own windows, of two seconds: one that starts at a full ten takes all of its key into the first of them."""

    merging = True

    def assign(self, timestamp_us, *values):
        start = timestamp_us // (2 * S) * 2 * S
        yield start, start + 2 * S

    def merge(self, windows):
        if any(start % (10 * S) == 0 for start, _ in windows):
            yield windows, windows[0]
