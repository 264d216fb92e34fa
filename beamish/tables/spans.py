"""How a line of time is cut into segments: short spans where much lies, long ones where there is little.

A segment's number is where its span begins, microseconds since the epoch. Spans that are there stay as they are; how long
those after them are follows from what the last ones came to hold, so nothing is ever cut anew.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from beamish.durations import LONGEST_US
from beamish.kernels.arrays import Ints

_BEGIN_US = -(2**60)
"""Before every time."""
_SHORTEST_US, _LONGEST_US = 1_000, 10 * 365 * 86_400_000_000


@attrs.frozen
class SpanPolicy:
    """How many rows a span should hold; it may differ from step to step and changes nothing in what comes out.

    Attributes:
        rows: about as many.
        first_us: how long the first span is, microseconds.
        few_spans: this number of spans is never too great.
    """

    rows: int = 8_192
    first_us: int = 60_000_000
    few_spans: int = 16


@attrs.define(eq=False)
class Spans:
    """How time is cut.

    Attributes:
        policy: how many rows a span should hold.
        since_us, span_us: from when on spans are how long, microseconds; the first from the beginning of time.
    """

    policy: SpanPolicy
    since_us: list[int]
    span_us: list[int]

    @classmethod
    def of(cls, policy: SpanPolicy, stored: Any) -> Spans:
        """From what ``about`` gave, or new ones."""
        return cls(policy, *([[_BEGIN_US], [policy.first_us]] if stored is None else [list(part) for part in stored]))

    @property
    def about(self) -> list[list[int]]:
        """In terms of JSON."""
        return [self.since_us, self.span_us]

    def number(self, time_us: Ints) -> Ints:
        """The number of the segment of each time: int64, microseconds."""
        since, span = np.array(self.since_us), np.array(self.span_us)
        at = np.maximum(np.searchsorted(since, time_us, side="right") - 1, 0)
        numbers: Ints = since[at] + (time_us - since[at]) // span[at] * span[at]
        return numbers

    def adapt(self, new_us: Ints, numbers: Ints, rows: Ints) -> None:
        """Choose how long the next spans are.

        Args:
            new_us: int64, microseconds: times of rows that are to be stored.
            numbers, rows: int64, one per stored segment: its number, and how many rows it has.
        """
        last_us = self.span_us[-1]
        end_us = int(numbers.max()) + last_us if len(numbers) else _BEGIN_US
        beyond = new_us[new_us >= end_us]
        if len(beyond) > self.policy.rows:
            wanted = self.policy.rows * int(beyond.max() - beyond.min() + 1) // len(beyond)
        elif len(beyond) and len(numbers) and numbers.max() >= self.since_us[-1]:
            wanted = last_us * self.policy.rows // int(rows[numbers.argmax()])
            if wanted > last_us and len(numbers) <= self.policy.few_spans:
                return
        else:
            return
        wanted = min(max(wanted, _SHORTEST_US), _LONGEST_US)
        if max(wanted, last_us) >= 4 * min(wanted, last_us):
            since_us = end_us if len(numbers) else int(beyond.min())
            self._change(max(since_us, self.since_us[-1]), wanted)
        least = int(numbers.min()) if len(numbers) else -LONGEST_US
        while len(self.since_us) > 1 and self.since_us[1] <= least:
            del self.since_us[0], self.span_us[0]

    def _change(self, since_us: int, span_us: int) -> None:
        if since_us == self.since_us[-1]:
            self.span_us[-1] = span_us
        else:
            self.since_us.append(since_us)
            self.span_us.append(span_us)
