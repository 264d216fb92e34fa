"""The clocks of a shard: a watermark for each input, that of all, and processing time; and the event times that the engine takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from beamish.instants import EARLIEST_US, LATEST_US
from beamish.watermarks import NO_WATERMARK_US, Progress, Watermark


@attrs.define
class Clocks:
    """The clocks of a shard, in microseconds since the epoch.

    Attributes:
        inputs: the watermark of each input.
        watermark_us: the least of the inputs', undefined before each has one, or the greatest; it decides which rows are late.
        clock_us: the processing-time clock.
    """

    inputs: list[Progress]
    watermark_us: int = NO_WATERMARK_US
    clock_us: int = 0

    @classmethod
    def new(cls, inputs: int) -> Clocks:
        """The clocks before the first step."""
        return cls([Progress() for _ in range(inputs)])

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Clocks:
        """From the result of ``attrs.asdict``."""
        return cls(**{**stored, "inputs": [Progress(**progress) for progress in stored["inputs"]]})

    @classmethod
    def furthest(cls, clocks: Sequence[Clocks]) -> Clocks:
        """The furthest clocks of some shards: nothing is due in a shard between its own clocks and these."""
        inputs = [
            Progress(*(max(values) for values in zip(*map(attrs.astuple, progress), strict=True)))
            for progress in zip(*(one.inputs for one in clocks), strict=True)
        ]
        return cls(inputs, max(one.watermark_us for one in clocks), max(one.clock_us for one in clocks))

    def step(
        self,
        policies: Sequence[Watermark],
        sources_us: Sequence[int | None],
        clock_us: int | None,
        *,
        fastest: bool = False,
    ) -> tuple[int, int]:
        """Advance to the next step; None and earlier values are ignored.

        Args:
            policies: the watermark policy of each input.
            sources_us: per input the watermark of its source, microseconds.
            clock_us: the processing-time clock, microseconds.
            fastest: whether the watermark is the greatest of the inputs'.

        Returns:
            the previous watermark and clock.
        """
        before = self.watermark_us, self.clock_us
        if clock_us is not None:
            self.clock_us = max(self.clock_us, clock_us)
        now_us = None if clock_us is None else self.clock_us
        for policy, progress, source_us in zip(policies, self.inputs, sources_us, strict=True):
            policy.advance(progress, source_us, now_us, before[1])
        each = [progress.watermark_us for progress in self.inputs]
        self.watermark_us = max(self.watermark_us, max(each) if fastest else min(each))
        return before


def in_range(time_us: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which event times (int64, microseconds since the epoch) are supported."""
    inside: NDArray[np.bool_] = (time_us >= EARLIEST_US) & (time_us <= LATEST_US)
    return inside


def horizon_us(watermark_us: int, span_us: int) -> int:
    """The time below which the watermark has passed everything by a span, microseconds; before there is a watermark, nothing."""
    return max(watermark_us - span_us, NO_WATERMARK_US)
