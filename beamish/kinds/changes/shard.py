"""A shard of a changes stage: its clocks, and rows as updates; only the suppress stores the rows that they replace.

Its state is one entry, ``changes``: JSON with the clocks, the number of dropped rows, and what the suppress holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.drops import (
    EVENT_TIME_OUT_OF_RANGE,
    EXPIRED,
    NULL_EVENT_TIME,
    TAKEN,
    Drops,
    structs,
)
from beamish.contract.event_times import in_range
from beamish.contract.operator import Operator
from beamish.contract.pane_columns import (
    PANE_KIND,
    RETRACTION_KIND,
    UNKNOWN,
    Block,
    make_block,
)
from beamish.contract.sharding import from_shards
from beamish.contract.store import Store
from beamish.contract.updates import Updates
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags
from beamish.kernels.order import sort_order
from beamish.kernels.reserved import EVENT_TIME, FIRST, ROWS
from beamish.kinds.changes.order import newest_keys
from beamish.kinds.changes.plan import ChangesPlan
from beamish.kinds.changes.slots import deletes, windows_of
from beamish.tables.noted_shard import NotedShard
from beamish.tables.notes import kind_entry


class ChangesShard(NotedShard):
    """Some of the keys of a changes stage (see ``contract/operator.py``)."""

    ENTRY, HOLDS = kind_entry("changes", "a stage of changes()"), "changes"

    def __init__(self, operator: Operator, plan: ChangesPlan, store: Store) -> None:
        super().__init__(operator, store, "changes()")
        self._plan = plan

    @property
    def next_due_us(self) -> int | None:
        return None

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        plan = self._plan
        self.clocks.step([plan.takes.policy], sources_us, clock_us)
        if not payloads:
            return []
        rows = from_shards(payloads)[0]
        windows = windows_of(plan, rows)
        null = rows[EVENT_TIME].is_null().to_numpy()
        time_us = rows[EVENT_TIME].fill_null(0).to_numpy()
        outside = ~null & ~in_range(time_us)
        expired = ~null & ~outside & self._expired(windows)
        drops = Drops(plan.gives.schema, self.dropped)
        listed, sizes = structs(rows, plan.schema) if drops.lists else None, rows[ROWS].to_numpy()
        keys = {name: rows[name].combine_chunks() for name in plan.key_schema.names}
        for flags, reason in ((null, NULL_EVENT_TIME), (outside, EVENT_TIME_OUT_OF_RANGE), (expired, EXPIRED)):
            why = np.where(flags, reason, TAKEN)
            of_window = windows if reason == EXPIRED else None
            drops.add(why, time_us, self.clocks.watermark_us, keys, listed, sizes, windows=of_window)
        kept = np.flatnonzero(~(null | outside | expired))
        own = rows.take(pa.array(kept))
        if not plan.preaggregates:  # they may be emitted one by one
            values = own.select(plan.value_schema.names)
            before, after = newest_keys(plan, time_us[kept], deletes(plan, own), values)
            order = sort_order([time_us[kept], *before, *after])
            kept, own = kept[order], own.take(pa.array(order))
        columns = {name: column[kept] for name, column in windows.items()}
        columns["kind"] = np.where(deletes(plan, own), RETRACTION_KIND, PANE_KIND).astype(np.int8)
        columns["pane_time_us"] = time_us[kept]
        values = own.select(plan.value_schema.names)
        columns["replaces"] = replaces(columns["kind"])
        block = make_block(len(kept), timing=UNKNOWN, is_first=True, **columns)
        keyed = own.select(plan.key_schema.names)
        return [*drops.updates, Updates(block, keyed, values, since_us=own[FIRST].to_numpy())]

    def _expired(self, windows: Block) -> Flags:
        """Whether rows arrive after their window has expired: bool, one per row."""
        grace = self._plan.grace
        if grace is None:
            return np.zeros(len(windows["end_us"]), dtype=bool)
        end = np.where(windows["windowless"], END_OF_TIME_US - grace.us, windows["end_us"])
        return self.clocks.watermark_us - grace.us >= end


def replaces(kind: NDArray[np.int8]) -> Flags:
    """Whether changes of these kinds may replace others: upserts do, since the old value is unknown."""
    sets: Flags = kind == PANE_KIND
    return sets
