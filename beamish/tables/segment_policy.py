"""Partitioning of windows into segments: by spans of window ends, or by hashes of keys."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from beamish.instants import END_OF_TIME_US
from beamish.kernels.codes import hash_rows
from beamish.tables.working_table import Pool

HASHED_SEGMENTS = 64


FIRST_HASHED = -(2**62)
"""Number of the first segment of windows without an end."""


@attrs.frozen
class SegmentPolicy:
    """The segment policy of windows; it may change from step to step and does not affect the output.

    Attributes:
        few_segments: this number of segments is always acceptable.
        few_windows: with more segments, spans get longer if segments have fewer windows than this on average.
        many_windows: spans get shorter if segments have more windows than this on average.
        shortest_us, longest_us: bounds of a span, in microseconds.
        shortest_apart_us: the lower bound if a row is in few windows, so that a batch touches only the last segments.
        unknown_period_us: the least span if the window option has no known period.
        most_segments: maximum number of segments within the allowed lateness.
        recent_windows, recent_batches: more recent windows without an end than the first, and than the second times those that change in
            a step, become a generation (``kinds/window/state/endless.py``).
        most_generations: with as many, the next one takes all their windows.
        shortest_rows, periods: for count windows by key, the least span of full ones in rows and in periods.
    """

    few_segments: int = 16
    few_windows: int = 512
    many_windows: int = 65_536
    shortest_us: int = 60_000_000
    shortest_apart_us: int = 1_000_000
    longest_us: int = 10 * 365 * 86_400_000_000
    unknown_period_us: int = 3_600_000_000
    most_segments: int = 2048
    recent_windows: int = 8_192
    recent_batches: int = 4
    most_generations: int = 8
    shortest_rows: int = 512
    periods: int = 32

    def least_span_us(self, period_us: int | None, lateness: int, *, counts_rows: bool, apart: bool = False) -> int:
        """The initial span of a pipeline, which is also the minimum.

        Args:
            period_us: the distance of window ends, microseconds, or rows; None: unknown.
            lateness: the allowed lateness, microseconds, or rows.
            counts_rows: whether both are in rows.
            apart: whether a row is in one window, or in two that follow one another.
        """
        period = period_us or self.unknown_period_us
        if counts_rows:
            return max(period * self.periods, self.shortest_rows)
        shortest_us = self.shortest_apart_us if apart else self.shortest_us
        return min(max(period, shortest_us, lateness // self.most_segments), self.longest_us)

    def next_span_us(self, least_us: int, span_us: int, segments: int, windows: int) -> int:
        """The span for the next step: longer if segments have few windows, shorter if many.

        Args:
            least_us: the minimum, microseconds.
            span_us: the current span.
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
    """The segment of each window, by its end, or by its key if it has no end.

    Args:
        span_us: the span of ends in a segment, microseconds.
        end_us: int64, one per window, microseconds since the epoch.
        keys: the pool of keys.
        key_at: int64, one per window: the position of its key in the pool.

    Returns:
        int64, one per window: the number of its segment.
    """
    number = end_us // span_us
    never = np.flatnonzero(end_us == END_OF_TIME_US)
    if len(never):
        hashes = hash_rows(keys.take(key_at[never]).columns, len(never))
        number[never] = FIRST_HASHED + (hashes % np.uint64(HASHED_SEGMENTS)).astype(np.int64)
    return number
