"""A shard of a changes stage: its clocks, and rows as updates; what they replace is known only to the suppress.

Its state is one entry, ``changes``: JSON with the clocks, the number of dropped rows, and what the suppress holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.clocks import Clocks
from beamish.contract.event_times import in_range
from beamish.contract.pane_columns import (
    DROPPED_KIND,
    PANE_KIND,
    RETRACTION_KIND,
    UNKNOWN,
    Block,
    make_block,
    pane_column,
    timestamp_column,
    window_column,
)
from beamish.contract.store import Store
from beamish.contract.updates import Updates, UpdatingShard
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.order import sort_order
from beamish.kernels.reserved import EVENT_TIME, FIRST, ROWS
from beamish.kinds.changes.order import newest_keys
from beamish.kinds.changes.packing import unpack_changes
from beamish.kinds.changes.plan import ChangesPlan
from beamish.kinds.changes.slots import deletes, windows_of
from beamish.pane import DropReason
from beamish.tables.notes import read_note
from beamish.watermarks import NO_WATERMARK_US

ENTRY = "changes"
FORMAT = 1


def read_about(store: Store, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is noted in a shard's store; None: it begins.

    Args:
        store: the shard's.
        identity: of the stage: what may not change.

    Raises:
        StateError: it was written by another stage, number of shards or format.
    """
    return read_note(store, ENTRY, identity, FORMAT, holds="changes", by="changes()")


class ChangesShard(UpdatingShard):
    """Some of the keys of a changes stage (see ``contract/updates.py``).

    Raises:
        StateError: the state was written by another stage, number of shards or format.
    """

    def __init__(self, plan: ChangesPlan, store: Store) -> None:
        self._plan, self._store = plan, store
        self._clocks, self._dropped = Clocks.new(1), dict[str, int]()
        self._held: Mapping[str, Any] | None = None
        about = read_about(store, plan.identity)
        if about is None:
            return
        self._clocks, self._dropped = Clocks.of(about["clocks"]), about["dropped"]
        self._held = about["held"]

    @property
    def clocks(self) -> Clocks:
        return self._clocks

    @property
    def held(self) -> Mapping[str, Any] | None:
        return self._held

    @property
    def watermark_us(self) -> int | None:
        watermark_us = self._clocks.watermark_us
        return None if watermark_us == NO_WATERMARK_US else watermark_us

    @property
    def next_due_us(self) -> int | None:
        return None

    @property
    def dropped(self) -> Mapping[str, int]:
        return dict(self._dropped)

    def step(self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]) -> pa.Table:
        raise NotImplementedError  # it stands only under a suppress

    def updates(self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]) -> Updates:
        plan = self._plan
        self._clocks.step([plan.takes.policy], sources_us, clock_us)
        if not payloads:
            return _no_updates(plan)
        rows = unpack_changes(payloads)
        windows = windows_of(plan, rows)
        null = rows[EVENT_TIME].is_null().to_numpy()
        time_us = rows[EVENT_TIME].fill_null(0).to_numpy()
        outside = ~null & ~in_range(time_us)
        expired = ~null & ~outside & self._expired(windows)
        dropped = [
            self._drop(rows, windows, time_us, flags, reason)
            for flags, reason in (
                (null, DropReason.NULL_EVENT_TIME),
                (outside, DropReason.EVENT_TIME_OUT_OF_RANGE),
                (expired, DropReason.EXPIRED),
            )
        ]
        kept = np.flatnonzero(~(null | outside | expired))
        own = rows.take(pa.array(kept))
        if not plan.preaggregates:  # they may come out one by one
            values = own.select(plan.value_schema.names)
            before, after = newest_keys(plan, time_us[kept], deletes(plan, own), values)
            order = sort_order([time_us[kept], *before, *after])
            kept, own = kept[order], own.take(pa.array(order))
        columns = {name: column[kept] for name, column in windows.items()}
        columns["kind"] = np.where(deletes(plan, own), RETRACTION_KIND, PANE_KIND).astype(np.int8)
        columns["pane_time_us"] = time_us[kept]
        keys, values = own.select(plan.key_schema.names), own.select(plan.value_schema.names)
        columns["replaces"] = replaces(columns["kind"])
        block = make_block(len(kept), timing=UNKNOWN, is_first=True, **columns)
        return Updates(block, keys, values, pa.concat_tables(dropped), own[FIRST].to_numpy())

    def _expired(self, windows: Block) -> Flags:
        """Whether rows come after their window has closed: bool, one per row."""
        grace = self._plan.grace
        if grace is None:
            return np.zeros(len(windows["end_us"]), dtype=bool)
        end = np.where(windows["windowless"], END_OF_TIME_US - grace.us, windows["end_us"])
        return self._clocks.watermark_us - grace.us >= end

    def _drop(self, rows: pa.Table, windows: Block, time_us: Ints, flags: Flags, reason: DropReason) -> pa.Table:
        """Count dropped rows; gives them as rows of output where they are to be listed."""
        plan, schema = self._plan, self._plan.gives.schema
        assert schema is not None  # noqa: S101 - it is bound
        count = int(rows[ROWS].to_numpy()[flags].sum())
        if count:
            self._dropped[str(reason)] = self._dropped.get(str(reason), 0) + count
        if not count or not plan.options.with_dropped:
            return schema.empty_table()
        at = np.flatnonzero(flags)
        own = rows.take(pa.array(at)).combine_chunks()
        late_by = pa.nulls(len(at), pa.int64())
        if reason is DropReason.EXPIRED:
            late_by = pa.array(self._clocks.watermark_us - time_us[at])
        of_window = reason is DropReason.EXPIRED
        columns = {
            name: column[at] if of_window else np.zeros(len(at), column.dtype) for name, column in windows.items()
        }
        columns["windowless"] = columns["windowless"] | (not of_window)
        block = make_block(len(at), kind=DROPPED_KIND, **columns)
        row = pa.StructArray.from_arrays(
            [own[name].combine_chunks() for name in plan.schema.names], fields=list(plan.schema)
        )
        reasons = pa.array([str(reason)] * len(at), pa.string())
        dropped = pa.StructArray.from_arrays([reasons, late_by, row], fields=list(schema.field("dropped").type))
        values = [pa.nulls(len(at), field.type) for field in plan.value_schema]
        all_null = timestamp_column(np.zeros(len(at), dtype=np.int64), np.ones(len(at), dtype=bool))
        keys = own.select(plan.key_schema.names).columns
        return pa.table([*keys, window_column(block), *values, pane_column(block), all_null, dropped], schema=schema)

    def save(self, held: Mapping[str, Any]) -> None:
        about = {
            "format": FORMAT,
            "identity": self._plan.identity,
            "clocks": attrs.asdict(self._clocks),
            "dropped": self._dropped,
            "held": dict(held),
        }
        self._store.put(ENTRY, json.dumps(about).encode())


def replaces(kind: NDArray[np.int8]) -> Flags:
    """Whether changes of these kinds may replace others: what sets a slot does, what it held before is not known."""
    sets: Flags = kind == PANE_KIND
    return sets


def _no_updates(plan: ChangesPlan) -> Updates:
    assert plan.gives.schema is not None  # noqa: S101 - it is bound
    none = plan.gives.schema.empty_table()
    return Updates(make_block(0), plan.key_schema.empty_table(), plan.value_schema.empty_table(), none)
