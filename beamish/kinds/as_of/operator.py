"""An as-of join bound to its data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import attrs
import pyarrow as pa

from beamish.contract.conditions import columns_of_where, wanted
from beamish.contract.kept import KeyedTable, Note
from beamish.contract.operator import Native, Operator, Shard
from beamish.contract.signs import sign_column
from beamish.contract.store import Store
from beamish.kinds.as_of.left_rows import KEPT, WAITING, left_table, pack_left
from beamish.kinds.as_of.plan import LEFT, AsOfPlan
from beamish.kinds.as_of.shard import AsOfShard
from beamish.kinds.versions.note import ENTRY, read_note
from beamish.kinds.versions.packing import pack_changes
from beamish.kinds.versions.table import TablePolicy, versions_table
from beamish.tables.notes import entry_note


@attrs.define(slots=False, eq=False)
class AsOfOperator(Operator):
    """The operator of an as-of join (see ``contract/operator.py``).

    Attributes:
        plan: the join's plan.
        policy: how stored rows are partitioned into segments.
    """

    plan: AsOfPlan
    policy: TablePolicy = TablePolicy()

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = plan.takes, plan.gives, plan.shards, plan.identity
        self.moves_by(plan.policies)
        self.holds_watermark = bool(plan.options.grace)

    def reads(self, number: int) -> Sequence[str]:
        own = self.plan.left_schema.names if number == LEFT else self.plan.table.columns
        return (*dict.fromkeys((*own, *columns_of_where(self.takes[number]))), *sign_column(self.takes[number]))

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        if not rows.num_rows:
            return
        rows = wanted(self.takes[number], rows)
        if number == LEFT:
            yield from pack_left(self.plan, rows)
        else:
            yield from pack_changes(self.plan.table, rows, number, self.shards)

    def open(self, store: Store) -> Shard:
        return AsOfShard(self, self.plan, store, self.policy)

    def tables(self) -> Sequence[KeyedTable]:
        rows = [left_table(self.plan, name, self.policy.spans) for name in (WAITING, KEPT)]
        return [versions_table(self.plan.table, self.policy), *rows]

    def notes(self) -> Sequence[Note]:
        check = partial(read_note, table=self.plan.table, inputs=len(self.takes))
        return [entry_note(ENTRY, self.identity, check)]

    @property
    def native(self) -> Native:
        return Native(Native.WINDOW_FUNCTION, self.plan)
