"""The operator of a changes stage: rows that set and delete slots, packed by shard, as updates for a suppress.

Packing of changes: one payload of Arrow bytes per shard. Where the rows themselves are not needed, a task sends only the newest row of each
slot.

columns: the rows' own, and
    EVENT_TIME      int64; null if missing
    FIRST           int64: the earliest event time of the rows it represents
    ROWS            int64: their number

A shard of a changes stage: its clocks, and rows as updates; only the suppress stores the rows that they replace.

Its state is one entry, ``changes``: JSON with the clocks, the number of dropped rows, and what the suppress holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.contract.clocks import in_range
from beamish.contract.drops import EVENT_TIME_OUT_OF_RANGE, EXPIRED, NULL_EVENT_TIME, TAKEN, Drops, structs
from beamish.contract.keys import from_shards, keyed_windows, to_shards
from beamish.contract.operator import Operator, Shard
from beamish.contract.slots import Slots
from beamish.contract.stored import Note, Store
from beamish.contract.updates import PANE_KIND, RETRACTION_KIND, UNKNOWN, Block, Updates, make_block
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.codes import normalise
from beamish.kernels.column_names import EVENT_TIME, FIRST, ROWS
from beamish.kernels.order import sort_order
from beamish.kinds.changes.plan import ChangesPlan, deletes, newest_keys, windows_of
from beamish.tables.notes import CHANGES, NotedShard


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
    yield from to_shards(rows, keys, plan.takes, 0, plan.shards)


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


class ChangesShard(NotedShard):
    """Some of the keys of a changes stage (see ``contract/operator.py``)."""

    ENTRY, HOLDS, BY = CHANGES, "changes", "changes()"

    def __init__(self, operator: Operator, plan: ChangesPlan, store: Store) -> None:
        super().__init__(operator, store)
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
        listed, sizes = structs(rows, plan.takes.own_columns) if drops.lists else None, rows[ROWS].to_numpy()
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


@attrs.define(slots=False, eq=False)
class ChangesOperator(Operator):
    """A changes stage bound to its data (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
    """

    plan: ChangesPlan

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = (plan.takes,), plan.gives, plan.shards, plan.identity
        self.moves_by([plan.takes.policy])

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        return pack_changes(self.plan, rows)

    def notes(self) -> Sequence[Note]:
        return [ChangesShard.note(self.identity)]

    def open(self, store: Store) -> Shard:
        return ChangesShard(self, self.plan, store)

    @cached_property
    def slots(self) -> Slots:
        plan = self.plan
        return Slots(
            keys=plan.key_schema,
            values=plan.value_schema,
            newest_keys=partial(newest_keys, plan),
            closes_us=self._closes_us,
            replaces_unseen=lambda columns: replaces(columns["kind"]),
        )

    def _closes_us(self, end_us: Ints) -> Ints:
        grace = 0 if self.plan.grace is None else self.plan.grace.us
        return np.where(
            end_us > END_OF_TIME_US - grace, END_OF_TIME_US, np.minimum(end_us, END_OF_TIME_US - grace) + grace
        )
