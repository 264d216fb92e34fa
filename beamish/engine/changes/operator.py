"""The operator of a changes stage: rows that set and delete slots, as updates for a suppress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa

from beamish.engine.changes.packing import pack_changes
from beamish.engine.changes.shard import ChangesShard, replaces
from beamish.engine.operator import Cadence
from beamish.engine.pane_columns import Block, pane_column, timestamp_column, window_column
from beamish.engine.state.store import Store
from beamish.engine.updates import Updates, UpdatingOperator, UpdatingShard
from beamish.engine.windowing.packing import shards_of_keys
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.buffers import plain
from beamish.kernels.groups import Groups
from beamish.kernels.order import Key, is_orderable, sort_keys
from beamish.plan.changes_plan import ChangesPlan
from beamish.plan.schemas import dropped_type


@attrs.define(slots=False, eq=False)
class ChangesOperator(UpdatingOperator):
    """A changes stage bound to its data (see ``engine/updates.py``).

    Attributes:
        plan: the stage's plan.
    """

    plan: ChangesPlan
    adds_up = False
    waits_for_pane = False
    keeps_newest = True

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = (plan.takes,), plan.gives, plan.shards, plan.identity
        self.needs_clock = plan.takes.policy.needs_clock
        self.cadence = Cadence.WHEN_DUE if plan.takes.policy.idle_timeout is None else Cadence.EVERY_STEP
        self.key_schema, self.value_schema = plan.key_schema, plan.value_schema

    def reads(self, number: int) -> Sequence[str]:
        return list(self.plan.schema.names)

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        return pack_changes(self, rows)

    def open(self, store: Store) -> UpdatingShard:
        return ChangesShard(self, store)

    def combine(self, values: pa.Table, groups: Groups) -> pa.Table:
        raise NotImplementedError  # changes replace each other

    def shard_of(self, keys: pa.Table) -> int:
        columns = [column.combine_chunks() for column in keys.columns]
        return int(shards_of_keys(columns, Groups.each(1), self.shards)[0])

    def closes_us(self, end_us: Ints) -> Ints:
        grace = 0 if self.plan.grace is None else self.plan.grace.us
        return np.where(
            end_us > END_OF_TIME_US - grace, END_OF_TIME_US, np.minimum(end_us, END_OF_TIME_US - grace) + grace
        )

    def newest_keys(self, time_us: Ints, deletes: Flags, values: pa.Table) -> tuple[list[Key], list[Key]]:
        by = self.plan.options.sequence_by
        before = [time_us] if by is None else sort_keys(plain(values[by].combine_chunks()))
        after = [(~deletes).astype(np.int64)]
        for name in self._orderable:
            after += sort_keys(plain(values[name].combine_chunks()))
        return before, after

    def replaces_unseen(self, columns: Block) -> Flags:
        return replaces(columns["kind"])

    @cached_property
    def _orderable(self) -> list[str]:
        return [field.name for field in self.value_schema if is_orderable(field.type)]

    def rows(self, updates: Updates) -> pa.Table:
        columns = updates.columns
        none = np.zeros(len(columns["kind"]), dtype=bool)
        panes = pane_column(columns), timestamp_column(columns["pane_time_us"], none)
        dropped = [pa.nulls(len(none), self._dropped_type)] if self.plan.options.with_dropped else []
        all_columns = [*updates.keys.columns, window_column(columns), *updates.values.columns, *panes, *dropped]
        return pa.table(all_columns, schema=self.gives.schema)

    @property
    def _dropped_type(self) -> pa.DataType:
        return dropped_type(self.plan.row_type)
