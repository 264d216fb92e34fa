"""Where a shard's clocks stand, and how the policies of RULES.md 3 and 5 move its watermark."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from beamish.watermarks import BoundedOutOfOrderness, ProcessingTimeLag, Watermark
from beamish.windows.option import END_OF_TIME_US

NO_WATERMARK_US = -(2**63)
"""The watermark before there is one: less than every time."""


@attrs.define
class Clocks:
    """The clocks of a shard, in microseconds since the epoch.

    Attributes:
        watermark_us: the watermark rows are judged by.
        source_us: what the rows (Spark's watermark, the script) say it is; more than that only by idle_timeout.
        risen_at_us: the clock of the step in which ``source_us`` last rose.
        clock_us: the processing-time clock.
    """

    watermark_us: int = NO_WATERMARK_US
    source_us: int = NO_WATERMARK_US
    risen_at_us: int = 0
    clock_us: int = 0

    def step(self, policy: Watermark | None, source_us: int | None, clock_us: int | None) -> tuple[int, int]:
        """Move on to the next step; what is None or would go back is ignored.

        Returns:
            the watermark and the clock as they were before.
        """
        before = self.watermark_us, self.clock_us
        if clock_us is not None:
            self.clock_us = max(self.clock_us, clock_us)
        if source_us is not None and source_us > self.source_us:
            self.source_us, self.risen_at_us = source_us, self.clock_us
            self._raise_to(source_us)
        else:
            self._idle(policy, before[1])
        if isinstance(policy, ProcessingTimeLag) and clock_us is not None:
            self._raise_to(self.clock_us - policy.lag.us)
        return before

    def _idle(self, policy: Watermark | None, clock_before_us: int) -> None:
        timeout = policy.idle_timeout if isinstance(policy, BoundedOutOfOrderness) else None
        quiet = clock_before_us - self.risen_at_us
        if timeout is not None and self.source_us != NO_WATERMARK_US and quiet >= timeout.us:
            self._raise_to(min(self.source_us + quiet, END_OF_TIME_US))

    def _raise_to(self, watermark_us: int) -> None:
        self.watermark_us = max(self.watermark_us, watermark_us)


@attrs.define
class MergedClocks:
    """The clocks of a merge's inputs: each watermark by its own policy, and the merged one the least of them.

    Attributes:
        policies: one an input.
        clocks: the same.
    """

    policies: Sequence[Watermark]
    clocks: list[Clocks] = attrs.field()

    @clocks.default
    def _new(self) -> list[Clocks]:
        return [Clocks() for _ in self.policies]

    def step(self, sources_us: Sequence[int | None], clock_us: int | None) -> int | None:
        """Move on to the next step; gives the merged watermark, None before every input has one.

        Args:
            sources_us: what the rows of each input say its watermark is.
            clock_us: the clock.
        """
        for policy, clocks, source_us in zip(self.policies, self.clocks, sources_us, strict=True):
            clocks.step(policy, source_us, clock_us)
        least = min(clocks.watermark_us for clocks in self.clocks)
        return None if least == NO_WATERMARK_US else least
