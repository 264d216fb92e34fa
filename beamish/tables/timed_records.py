"""Records with a time, in segments by time.

columns of the index besides segment and rows: ``start_us``, ``end_us``, the least and the greatest time, microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

import attrs
import numpy as np

from beamish.contract.kept import Layout
from beamish.kernels.arrays import Ints
from beamish.kernels.reserved import EVENT_TIME
from beamish.tables.records import Records
from beamish.tables.segment_store import SegmentStore
from beamish.tables.segmented_records import RecordTable, SegmentedRecords, record_table
from beamish.tables.spans import SpanPolicy, Spans
from beamish.watermarks import NO_WATERMARK_US

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
        """The earliest time; None: there are no records."""
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
