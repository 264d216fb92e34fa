"""Packing of changes: one payload of Arrow bytes per shard.

Where the rows themselves are not needed, a task sends only the newest row of each slot.

columns: the rows' own, and
    EVENT_TIME      int64; null if missing
    FIRST           int64: the earliest event time of the rows it represents
    ROWS            int64: their number
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.event_times import in_range
from beamish.contract.keyed_windows import keyed_windows
from beamish.contract.sharding import to_shards
from beamish.kernels.codes import normalise
from beamish.kernels.order import sort_order
from beamish.kernels.reserved import EVENT_TIME, FIRST, ROWS
from beamish.kinds.changes.order import newest_keys
from beamish.kinds.changes.plan import ChangesPlan
from beamish.kinds.changes.slots import deletes, windows_of


def pack_changes(plan: ChangesPlan, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
    """Pack rows, one payload per shard.

    Args:
        plan: of the stage.
        rows: the plan's columns and ``EVENT_TIME``.
    """
    rows = rows.select([*plan.schema.names, EVENT_TIME]).combine_chunks()
    keys = [normalise(rows[name].combine_chunks()) for name in plan.key_schema.names]
    for name, column in zip(plan.key_schema.names, keys, strict=True):
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
    rows = rows.append_column(FIRST, rows[EVENT_TIME]).append_column(ROWS, pa.array(np.ones(rows.num_rows, np.int64)))
    if plan.preaggregates:
        rows = _newest(plan, rows)
    keys = [rows[name].combine_chunks() for name in plan.key_schema.names]
    yield from to_shards(rows, keys, 0, plan.shards)


def _newest(plan: ChangesPlan, rows: pa.Table) -> pa.Table:
    """The newest row of each slot; rows with a missing or out-of-range event time stay as they are."""
    timed = in_range(pc.fill_null(rows[EVENT_TIME], np.iinfo(np.int64).min).to_numpy())
    if not timed.any():
        return rows
    rest, rows = rows.filter(pa.array(~timed)), rows.filter(pa.array(timed)).combine_chunks()
    groups = keyed_windows(rows.select(plan.key_schema.names).columns, **windows_of(plan, rows)).groups()
    time_us = rows[EVENT_TIME].to_numpy()
    before, after = newest_keys(plan, time_us, deletes(plan, rows), rows.select(plan.value_schema.names))
    order = sort_order([*before, *after])
    newest = np.empty(groups.count, dtype=np.int64)
    newest[groups.of[order]] = order
    kept = rows.take(pa.array(newest))
    kept = kept.set_column(kept.schema.get_field_index(FIRST), FIRST, pa.array(groups.least(time_us)))
    kept = kept.set_column(kept.schema.get_field_index(ROWS), ROWS, pa.array(groups.sizes()))
    return pa.concat_tables([kept, rest])
