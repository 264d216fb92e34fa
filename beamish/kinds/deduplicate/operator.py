"""The operator of deduplication without windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import pyarrow as pa

from beamish.contract.kept import KeyedTable, Note
from beamish.contract.operator import Operator, Shard
from beamish.contract.sharding import times_of, to_shards
from beamish.contract.store import Store
from beamish.kernels.buffers import cast
from beamish.kernels.reserved import EVENT_TIME
from beamish.kinds.deduplicate.plan import DuplicatesPlan
from beamish.kinds.deduplicate.remembered import DEFAULT_POLICY, RememberedIds, ids_of, ids_table
from beamish.kinds.deduplicate.shard import DuplicatesShard
from beamish.tables.spans import SpanPolicy


@attrs.define(slots=False, eq=False)
class DuplicatesOperator(Operator):
    """A deduplication stage bound to its data (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how stored ids are partitioned into segments.
    """

    plan: DuplicatesPlan
    policy: SpanPolicy = DEFAULT_POLICY

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = (plan.takes,), plan.gives, plan.shards, plan.identity
        self.moves_by([plan.takes.policy])

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        columns = [cast(rows[field.name].combine_chunks(), field.type) for field in self.plan.schema]
        rows = pa.table([*columns, times_of(self.plan.takes, rows)], names=[*self.plan.schema.names, EVENT_TIME])
        keys = ids_of(rows, [self.plan.id_schema.names[place] for place in self.plan.key_of_ids])
        yield from to_shards(rows, keys, number, self.shards)

    def open(self, store: Store) -> Shard:
        return DuplicatesShard(self, self.plan, store, self._remembered(store))

    def tables(self) -> Sequence[KeyedTable]:
        return [ids_table(self.plan.id_schema, self.plan.key_of_ids, self._remembered)]

    def notes(self) -> Sequence[Note]:
        return [DuplicatesShard.note(self.identity, self.plan.options.call)]

    def _remembered(self, store: Store) -> RememberedIds:
        return RememberedIds(self.plan.id_schema, self.plan.within_us, store, self.policy)
