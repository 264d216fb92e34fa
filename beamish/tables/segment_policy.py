"""How windows are cut into segments: spans of window ends, or hashes of keys."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from beamish.instants import END_OF_TIME_US
from beamish.kernels.codes import hash_rows
from beamish.tables.pool import Pool

_HASHED_SEGMENTS = 64


_FIRST_HASHED = -(2**62)
"""The number of the first segment of windows that end at the end of time."""


@attrs.frozen
class SegmentPolicy:
    """How windows are cut into segments; it may differ from step to step and changes nothing in what comes out.

    Attributes:
        few_segments: this number of segments is never too great.
        few_windows: with more segments than that, spans get longer where segments hold fewer windows on average.
        many_windows: spans get shorter where segments hold more windows on average.
        shortest_us, longest_us: bounds of a span, in microseconds.
        unknown_period_us: the least span where the window option does not say how far apart windows end.
        most_segments: the least span is such that allowed lateness has no more segments than that.
        shortest_rows, periods: of windows counted by key a span of full ones is at least so many rows and periods long.
    """

    few_segments: int = 16
    few_windows: int = 512
    many_windows: int = 65_536
    shortest_us: int = 60_000_000
    longest_us: int = 10 * 365 * 86_400_000_000
    unknown_period_us: int = 3_600_000_000
    most_segments: int = 2048
    shortest_rows: int = 512
    periods: int = 32

    def least_span_us(self, period_us: int | None, lateness: int, *, counts_rows: bool) -> int:
        """The first span of a pipeline, and the least.

        Args:
            period_us: how far apart windows end, microseconds, or rows; None: unknown.
            lateness: the allowed lateness, microseconds, or rows.
            counts_rows: whether both are numbers of rows.
        """
        period = period_us or self.unknown_period_us
        if counts_rows:
            return max(period * self.periods, self.shortest_rows)
        return min(max(period, self.shortest_us, lateness // self.most_segments), self.longest_us)

    def next_span_us(self, least_us: int, span_us: int, segments: int, windows: int) -> int:
        """The span for the next step: longer where segments hold few windows, shorter where they hold many.

        Args:
            least_us: the least that it may be, microseconds.
            span_us: the span now.
            segments: number of segments.
            windows: number of windows in them.
        """
        if segments > self.few_segments and windows < segments * self.few_windows:
            span_us *= -(-segments * self.few_windows // windows)
        elif windows > segments * self.many_windows:
            span_us //= -(-windows // (segments * self.few_windows))
        return min(max(span_us, least_us), self.longest_us)


DEFAULT_POLICY = SegmentPolicy()


def segment_numbers(
    span_us: int, end_us: NDArray[np.int64], keys: Pool, key_at: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The segment of each window, by its end, or by its key if it ends at the end of time.

    Args:
        span_us: how long a span of ends a segment holds, microseconds.
        end_us: int64, one per window, microseconds since the epoch.
        keys: the pool of keys.
        key_at: int64, one per window: where its key is in the pool.

    Returns:
        int64, one per window: the number of its segment.
    """
    number = end_us // span_us
    never = np.flatnonzero(end_us == END_OF_TIME_US)
    if len(never):
        hashes = hash_rows(keys.take(key_at[never]).columns, len(never))
        number[never] = _FIRST_HASHED + (hashes % np.uint64(_HASHED_SEGMENTS)).astype(np.int64)
    return number
