"""The rows of the left input that a shard keeps, in one step: cut into segments by their times.

columns of the index beside segment and rows: ``start_us``, ``end_us``, the least and the greatest time, microseconds.
"""

from __future__ import annotations

import numpy as np

from beamish.contract.store import Store
from beamish.kernels.arrays import Flags, Ints
from beamish.kinds.as_of.left_rows import LeftRows, cells_schema
from beamish.kinds.as_of.plan import AsOfPlan
from beamish.tables.segment_store import Layout, SegmentStore
from beamish.tables.segmented_records import SegmentedRecords
from beamish.tables.spans import SpanPolicy, Spans
from beamish.watermarks import NO_WATERMARK_US

WAITING, KEPT = "waiting", "kept"
"""Before the entries of rows that wait until they are due, and of those that came out and may be corrected."""


class LeftTable:
    """Rows of the left input, under a name.

    Args:
        plan: the join's.
        store: the shard's.
        name: before their entries in the store.
        policy: how they are cut into segments.
    """

    def __init__(self, plan: AsOfPlan, store: Store, name: str, policy: SpanPolicy) -> None:
        segments = SegmentStore(store, Layout(name, ("start_us", "end_us")))
        self._stored = SegmentedRecords(segments, LeftRows.none(cells_schema(plan)))
        self._spans = Spans.of(policy, self._stored.segments.about.get("spans"))

    @property
    def rows(self) -> LeftRows:
        """Those in memory, those that went included."""
        return self._stored.records

    @property
    def alive(self) -> Flags:
        """Which of them are still there."""
        return self._stored.alive

    def load(self, since_us: int, until_us: int) -> Ints:
        """Read rows at times from one to another, both included; gives their indices in memory."""
        index = self._stored.segments.index
        self._stored.load_where((index["end_us"] >= since_us) & (index["start_us"] <= until_us))
        time_us = self.rows["time_us"]
        return np.flatnonzero(self.alive & (since_us <= time_us) & (time_us <= until_us))

    def add(self, rows: LeftRows) -> None:
        """Keep rows."""
        self._stored.add(rows)

    def remove(self, at: Ints) -> None:
        """Keep some no longer, by their indices in memory."""
        self._stored.remove(at)

    def forget(self, below_us: int) -> None:
        """Forget rows at times below one, as far as they make up segments."""
        self._stored.drop(self._stored.segments.index["end_us"] < below_us)

    @property
    def first_us(self) -> int | None:
        """The time of the earliest; None: there is none."""
        return min(self._stored.segments.index["start_us"].tolist(), default=None)

    @property
    def first_segment_us(self) -> int | None:
        """The time after which the first segment has no row; None: there is none."""
        return min(self._stored.segments.index["end_us"].tolist(), default=None)

    def stored(self) -> LeftRows:
        """All of them."""
        return self._stored.stored()

    def put(self, rows: LeftRows) -> None:
        """Keep rows that another shard had, and write them."""
        self.add(rows)
        self.save(NO_WATERMARK_US)

    def save(self, below_us: int) -> None:
        """Write what the step has changed, but for rows at times below one."""
        index = self._stored.segments.index
        self._spans.adapt(self.rows["time_us"][self._stored.is_new], index["segment"], index["rows"])
        self._stored.segments.about = {"spans": self._spans.about}
        self._stored.save(
            lambda rows: self._spans.number(rows["time_us"]),
            lambda rows: rows["time_us"] >= below_us,
            lambda rows, runs: {"start_us": runs.least(rows["time_us"]), "end_us": runs.greatest(rows["time_us"])},
        )
