"""A versions stage bound to its data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import attrs
import pyarrow as pa

from beamish.contract.conditions import columns_of_where, wanted
from beamish.contract.kept import KeyedTable, Note
from beamish.contract.operator import Operator, Shard
from beamish.contract.signs import sign_column
from beamish.contract.store import Store
from beamish.kinds.versions.note import ENTRY, read_note
from beamish.kinds.versions.packing import pack_changes
from beamish.kinds.versions.plan import VersionsPlan
from beamish.kinds.versions.shard import VersionsShard
from beamish.kinds.versions.table import TablePolicy, versions_table
from beamish.tables.notes import entry_note


@attrs.define(slots=False, eq=False)
class VersionsOperator(Operator):
    """The operator of a versions stage (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how its shards' tables are partitioned into segments.
    """

    plan: VersionsPlan
    policy: TablePolicy = TablePolicy()

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = (plan.table.takes,), plan.gives, plan.shards, plan.identity
        self.moves_by([plan.table.takes.policy])

    def reads(self, number: int) -> Sequence[str]:
        columns = (*self.plan.table.columns, *columns_of_where(self.takes[number]))
        return (*dict.fromkeys(columns), *sign_column(self.takes[number]))

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        if rows.num_rows:
            yield from pack_changes(self.plan.table, wanted(self.takes[number], rows), number, self.shards)

    def open(self, store: Store) -> Shard:
        return VersionsShard(self, self.plan, store, self.policy)

    def tables(self) -> Sequence[KeyedTable]:
        return [versions_table(self.plan.table, self.policy)]

    def notes(self) -> Sequence[Note]:
        return [entry_note(ENTRY, self.identity, partial(read_note, table=self.plan.table, inputs=1))]
