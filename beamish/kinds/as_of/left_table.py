"""The rows of the left input that a shard keeps, in one step: cut into segments by their times.

columns of the index beside segment and rows: ``start_us``, ``end_us``, the least and the greatest time, microseconds.
"""

from __future__ import annotations

import numpy as np

from beamish.contract.kept import KeyedTable, Layout
from beamish.contract.store import Store
from beamish.kernels.arrays import Ints
from beamish.kinds.as_of.left_rows import LeftRows, cells_schema
from beamish.kinds.as_of.plan import AsOfPlan
from beamish.tables.segment_store import SegmentStore
from beamish.tables.segmented_records import SegmentedRecords, record_table
from beamish.tables.spans import SpanPolicy, Spans

WAITING, KEPT = "waiting", "kept"
"""Before the entries of rows that wait until they are due, and of those that came out and may be corrected."""


def left_table(plan: AsOfPlan, name: str, policy: SpanPolicy) -> KeyedTable:
    """The declaration of rows under a name."""
    none, keys = LeftRows.none(cells_schema(plan)), [f"key.{key}" for key in plan.table.key_schema.names]
    return record_table(_layout(name), none, keys, lambda store: LeftTable(plan, store, name, policy))


def _layout(name: str) -> Layout:
    return Layout(name, ("start_us", "end_us"))


class LeftTable(SegmentedRecords[LeftRows]):
    """Rows of the left input, under a name.

    Args:
        plan: the join's.
        store: the shard's.
        name: before their entries in the store.
        policy: how they are cut into segments.
    """

    def __init__(self, plan: AsOfPlan, store: Store, name: str, policy: SpanPolicy) -> None:
        super().__init__(SegmentStore(store, _layout(name)), LeftRows.none(cells_schema(plan)))
        self._spans = Spans.of(policy, self.segments.about.get("spans"))

    def between(self, since_us: int, until_us: int) -> Ints:
        """Read rows at times from one to another, both included; gives their indices in memory."""
        index = self.segments.index
        self.load_where((index["end_us"] >= since_us) & (index["start_us"] <= until_us))
        time_us = self.records["time_us"]
        return np.flatnonzero(self.alive & (since_us <= time_us) & (time_us <= until_us))

    def forget(self, below_us: int) -> None:
        """Forget rows at times below one, as far as they make up segments."""
        self.drop(self.segments.index["end_us"] < below_us)

    @property
    def first_us(self) -> int | None:
        """The time of the earliest; None: there is none."""
        return min(self.segments.index["start_us"].tolist(), default=None)

    @property
    def first_segment_us(self) -> int | None:
        """The time after which the first segment has no row; None: there is none."""
        return min(self.segments.index["end_us"].tolist(), default=None)

    def save(self, watermark_us: int) -> None:
        """Write what the step has changed, but for rows at times below this one."""
        index = self.segments.index
        self._spans.adapt(self.records["time_us"][self.is_new], index["segment"], index["rows"])
        self.segments.about = {"spans": self._spans.about}
        self.write_back(
            lambda rows: self._spans.number(rows["time_us"]),
            lambda rows: rows["time_us"] >= watermark_us,
            lambda rows, runs: {"start_us": runs.least(rows["time_us"]), "end_us": runs.greatest(rows["time_us"])},
        )
