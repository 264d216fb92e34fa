"""Records with a time, cut into segments by it: short spans where much lies, long ones where there is little.

columns of the index besides segment and rows: ``start_us``, ``end_us``, the least and the greatest time, microseconds.

Adaptive time spans for segments: short where there are many rows, long where there are few. A segment's number is the start of its span,
microseconds since the epoch. Existing spans never change; the length of later ones depends on the size of the last ones, so nothing is ever
repartitioned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

import attrs
import numpy as np

from beamish.contract.stored import Layout
from beamish.durations import LONGEST_US
from beamish.kernels.buffers import Ints
from beamish.kernels.column_names import EVENT_TIME
from beamish.tables.records import Records, RecordTable, SegmentedRecords, record_table
from beamish.tables.segments import SegmentStore
from beamish.watermarks import NO_WATERMARK_US

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
        beyond = np.sort(new_us[new_us >= end_us])
        if len(beyond) > self.policy.rows or len(np.unique(beyond // last_us)) > self.policy.few_spans:
            most = beyond[len(beyond) // 10 : len(beyond) - len(beyond) // 10]  # few are far from the others
            wanted = self.policy.rows * int(most[-1] - most[0] + 1) // len(most)
        elif len(beyond) and len(numbers) and numbers.max() >= self.since_us[-1]:
            wanted = last_us * self.policy.rows // int(rows[numbers.argmax()])
            if wanted > last_us and len(numbers) <= self.policy.few_spans:
                return
        else:
            return
        wanted = min(max(wanted, _SHORTEST_US), _LONGEST_US)
        if max(wanted, last_us) >= 4 * min(wanted, last_us):
            since_us = end_us if len(numbers) else int(beyond[0])
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


_POLICY = SpanPolicy()


@attrs.frozen(eq=False)
class Timed(Records):
    """Cells with a time, in the column ``TIME``: int64, microseconds."""

    TIME: ClassVar[str] = EVENT_TIME
    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {EVENT_TIME: ("int64", 0)}

    @property
    def time_us(self) -> Ints:
        """The times."""
        return self[self.TIME]


T = TypeVar("T", bound=Timed)


class TimedRecords(SegmentedRecords[T]):
    """The records of a shard.

    Args:
        segments: the stored segments.
        none: an empty table of these records.
        policy: how they are partitioned into segments.
    """

    def __init__(self, segments: SegmentStore, none: T, policy: SpanPolicy) -> None:
        super().__init__(segments, none)
        self._spans = Spans.of(policy, self.segments.about.get("spans"))

    def between(self, since_us: int, until_us: int) -> Ints:
        """Load records in a range of times, bounds included; returns their indices in memory."""
        index = self.segments.index
        self.load_where((index["end_us"] >= since_us) & (index["start_us"] <= until_us))
        time_us = self.records.time_us
        return np.flatnonzero(self.alive & (since_us <= time_us) & (time_us <= until_us))

    def take_until(self, until_us: int) -> T:
        """Take out the records at times up to one."""
        at = self.between(NO_WATERMARK_US, until_us)
        self.remove(at)
        return self.records.take(at)

    def forget(self, below_us: int) -> None:
        """Drop segments whose records are all at times below this one."""
        self.drop(self.segments.index["end_us"] < below_us)

    @property
    def first_us(self) -> int | None:
        """The earliest time; None: no records."""
        return min(self.segments.index["start_us"].tolist(), default=None)

    @property
    def first_segment_us(self) -> int | None:
        """The latest time in the first segment, or None."""
        return min(self.segments.index["end_us"].tolist(), default=None)

    def save(self, watermark_us: int = NO_WATERMARK_US) -> None:
        """Write what the step has changed, but for records at times below this one."""
        index = self.segments.index
        self._spans.adapt(self.records.time_us[self.is_new], index["segment"], index["rows"])
        self.segments.about = {"spans": self._spans.about}
        self.write_back(
            lambda of: self._spans.number(of.time_us),
            lambda of: of.time_us >= watermark_us,
            lambda columns, runs: {
                "start_us": runs.least(columns[self._none.TIME]),
                "end_us": runs.greatest(columns[self._none.TIME]),
            },
        )


def timed_table(name: str, none: T, key: Iterable[str], policy: SpanPolicy = _POLICY) -> RecordTable[TimedRecords[T]]:
    """Declare a table of such records.

    Args:
        name: prefix of its entries in a shard's store.
        none: an empty table of its records.
        key: names of the cells that records are partitioned by.
        policy: how it is partitioned into segments.
    """
    layout = Layout(name, ("start_us", "end_us"))
    return record_table(layout, none, key, lambda store: TimedRecords(SegmentStore(store, layout), none, policy))
