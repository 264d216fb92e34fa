"""A shard of a versions stage.

Panes of a stage are processed before the watermark moves, rows of a source after (docs/rules/time.md#steps-and-clocks).
"""

from __future__ import annotations

from collections.abc import Sequence

from beamish.contract.drops import Drops
from beamish.contract.operator import Operator
from beamish.contract.sharding import from_shards
from beamish.contract.store import Store
from beamish.contract.updates import Updates
from beamish.kinds.versions.arrival import arrive
from beamish.kinds.versions.plan import VersionsPlan
from beamish.kinds.versions.rows import version_rows
from beamish.kinds.versions.table import TablePolicy
from beamish.kinds.versions.table_shard import TableShard


class VersionsShard(TableShard):
    """A shard of a versions stage (see ``contract/operator.py``)."""

    def __init__(self, operator: Operator, plan: VersionsPlan, store: Store, policy: TablePolicy) -> None:
        super().__init__(operator, plan.table, store, policy, inputs=1)
        self._plan = plan

    @property
    def next_due_us(self) -> int | None:
        return self._table.next_due_us

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        table, plan, clocks = self._plan.table, self._plan, self.clocks
        before_us, _ = clocks.step([table.takes.policy], sources_us, clock_us)
        drops, out = Drops(plan.gives.schema, self._note.dropped), list[Updates]()
        if not table.takes.is_panes:
            self._table.forget(clocks.watermark_us)
        for changes in from_shards(payloads).values():
            judged_us = before_us if table.takes.is_panes else clocks.watermark_us
            keys = {name: changes[f"key.{name}"].combine_chunks() for name in table.key_schema.names}
            folded = arrive(
                self._table,
                self._note,
                changes,
                judged_us,
                drops=drops,
                keys=keys,
                latest_only=table.options.latest_only,
            )
            if folded is not None:
                out.append(version_rows(plan, folded))
        if table.takes.is_panes:
            self._table.forget(clocks.watermark_us)
        return [*drops.updates, *out]
