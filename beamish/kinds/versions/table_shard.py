"""The base of shards with a versioned table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from beamish.contract.operator import Operator, Shard
from beamish.contract.store import Store
from beamish.kinds.versions.arrival import begin
from beamish.kinds.versions.note import read_note
from beamish.kinds.versions.plan import TablePlan
from beamish.kinds.versions.table import TablePolicy, VersionTable


class TableShard(Shard):
    """A shard that keeps a versioned table.

    Args:
        operator: of the stage.
        plan: the table's.
        store: the shard's.
        policy: how the table is partitioned into segments.
        inputs: number of inputs whose watermark counts.

    Raises:
        StateError: the state was written by another stage, number of shards or format.
    """

    def __init__(self, operator: Operator, plan: TablePlan, store: Store, policy: TablePolicy, *, inputs: int) -> None:
        self.operator, self._store = operator, store
        self._note = read_note(store, operator.identity, plan, inputs)
        self.clocks, self.dropped = self._note.clocks, self._note.dropped
        self._table = VersionTable(plan, store, policy)

    def save(self, held: Mapping[str, Any] | None = None) -> None:
        self._table.save(self.clocks.watermark_us)
        self._note.write(self._store, self.operator.identity, self._table.plan)

    def begin(self, payloads: Sequence[bytes]) -> None:
        begin(self._table, self._note, payloads)
        self._note.write(self._store, self.operator.identity, self._table.plan)
