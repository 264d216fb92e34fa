"""The operator of a changes stage: rows that set and delete slots, as updates for a suppress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.operator import Cadence
from beamish.contract.pane_columns import Block, pane_column, timestamp_column, window_column
from beamish.contract.schemas import dropped_type
from beamish.contract.sharding import shards_of_keys
from beamish.contract.store import Store
from beamish.contract.updates import Updates, UpdatingOperator, UpdatingShard
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kernels.order import Key
from beamish.kinds.changes.order import newest_keys
from beamish.kinds.changes.packing import pack_changes
from beamish.kinds.changes.plan import ChangesPlan
from beamish.kinds.changes.shard import ChangesShard, replaces


@attrs.define(slots=False, eq=False)
class ChangesOperator(UpdatingOperator):
    """A changes stage bound to its data (see ``contract/updates.py``).

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
        return pack_changes(self.plan, rows)

    def open(self, store: Store) -> UpdatingShard:
        return ChangesShard(self.plan, store)

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
        return newest_keys(self.plan, time_us, deletes, values)

    def replaces_unseen(self, columns: Block) -> Flags:
        return replaces(columns["kind"])

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
