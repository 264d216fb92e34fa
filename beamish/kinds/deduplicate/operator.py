"""The operator of a stage that gives each row once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import pyarrow as pa

from beamish.contract.kept import KeyedTable, Note
from beamish.contract.operator import Operator, Shard
from beamish.contract.store import Store
from beamish.kinds.deduplicate.packing import pack_rows
from beamish.kinds.deduplicate.plan import DuplicatesPlan
from beamish.kinds.deduplicate.remembered import DEFAULT_POLICY, RememberedIds, ids_table
from beamish.kinds.deduplicate.shard import ENTRY, DuplicatesShard
from beamish.tables.notes import json_note
from beamish.tables.spans import SpanPolicy


@attrs.define(slots=False, eq=False)
class DuplicatesOperator(Operator):
    """A stage that gives each row once, bound to its data (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how the ids that its shards remember are cut into segments.
    """

    plan: DuplicatesPlan
    policy: SpanPolicy = DEFAULT_POLICY

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = (plan.takes,), plan.gives, plan.shards, plan.identity
        self.note = json_note(ENTRY, plan.identity, holds="ids", by=plan.options.call)
        self.moves_by([plan.takes.policy])

    def reads(self, number: int) -> Sequence[str]:
        return list(self.plan.schema.names)

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        if rows.num_rows:
            yield from pack_rows(self.plan, rows)

    def open(self, store: Store) -> Shard:
        return DuplicatesShard(self, self.plan, store, self.note, self._remembered(store))

    def tables(self) -> Sequence[KeyedTable]:
        return [ids_table(self.plan.id_schema, self.plan.key_of_ids, self._remembered)]

    def notes(self) -> Sequence[Note]:
        return [self.note]

    def _remembered(self, store: Store) -> RememberedIds:
        return RememberedIds(self.plan.id_schema, self.plan.within_us, store, self.policy)
