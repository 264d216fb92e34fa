"""Adaptive time spans for segments: short where there are many rows, long where there are few.

A segment's number is the start of its span, microseconds since the epoch. Existing spans never change; the length of later ones
depends on the size of the last ones, so nothing is ever repartitioned.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from beamish.durations import LONGEST_US
from beamish.kernels.arrays import Ints

_BEGIN_US = -(2**60)
"""Before all times."""
_SHORTEST_US, _LONGEST_US = 1_000, 10 * 365 * 86_400_000_000


@attrs.frozen
class SpanPolicy:
    """The target size of spans; it may change from step to step and does not affect the output.

    Attributes:
        rows: approximate number of rows.
        first_us: length of the first span, microseconds.
        few_spans: this number of spans is always acceptable.
    """

    rows: int = 8_192
    first_us: int = 60_000_000
    few_spans: int = 16


@attrs.define(eq=False)
class Spans:
    """The spans of a table.

    Attributes:
        policy: the target size.
        since_us, span_us: the starts of ranges with equal spans, and these spans, microseconds; the first from the beginning of time.
    """

    policy: SpanPolicy
    since_us: list[int]
    span_us: list[int]

    @classmethod
    def of(cls, policy: SpanPolicy, stored: Any) -> Spans:
        """From the result of ``about``, or new ones."""
        return cls(policy, *([[_BEGIN_US], [policy.first_us]] if stored is None else [list(part) for part in stored]))

    @property
    def about(self) -> list[list[int]]:
        """As JSON."""
        return [self.since_us, self.span_us]

    def number(self, time_us: Ints) -> Ints:
        """The number of the segment of each time: int64, microseconds."""
        since, span = np.array(self.since_us), np.array(self.span_us)
        at = np.maximum(np.searchsorted(since, time_us, side="right") - 1, 0)
        numbers: Ints = since[at] + (time_us - since[at]) // span[at] * span[at]
        return numbers

    def adapt(self, new_us: Ints, numbers: Ints, rows: Ints) -> None:
        """Choose the length of the next spans.

        Args:
            new_us: int64, microseconds: times of rows to be stored.
            numbers, rows: int64, one per stored segment: its number, and its number of rows.
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
