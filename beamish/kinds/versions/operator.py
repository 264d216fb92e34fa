"""A versions stage bound to its data: its shards, and new and superseded versions as updates (docs/rules/tables.md#versions-rows).

Panes of a stage are processed before the watermark moves, rows of a source after
(docs/rules/time.md#steps-and-clocks).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.drops import Drops
from beamish.contract.inputs import columns_of_where, sign_column, wanted
from beamish.contract.keys import from_shards
from beamish.contract.operator import Operator, Shard
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.stored_keys import StoredPart
from beamish.contract.updates import (
    LATE,
    ON_TIME,
    PANE_KIND,
    RETRACTION_KIND,
    TIMESTAMP,
    Updates,
    make_block,
    timestamp_column,
)
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import plain
from beamish.kernels.order import sort_keys, sort_order
from beamish.kinds.versions.folding import Folded
from beamish.kinds.versions.options import VALID_FROM, VALID_TO
from beamish.kinds.versions.plan import VersionsPlan, pack_changes
from beamish.kinds.versions.reading import stored_versions
from beamish.kinds.versions.table import TablePolicy, versions_table
from beamish.kinds.versions.table_shard import TableShard, table_note


def version_rows(plan: VersionsPlan, folded: Folded) -> Updates:
    """The updates of a step: per key retractions, by time, and then new versions."""
    went, came, then, now = folded.went, folded.came, folded.then, folded.now
    at = np.concatenate([then.at[went], now.at[came]])
    cells = folded.both.cells.take(pa.array(at))
    from_us = np.concatenate([then.from_us[went], now.from_us[came]])
    to_us = np.concatenate([then.to_us[went], now.to_us[came]])
    kind = np.repeat([RETRACTION_KIND, PANE_KIND], [len(went), len(came)])
    late = np.concatenate([then.late[went], now.late[came]])
    index = np.concatenate([then.panes[went] - 1, folded.came_before])
    by_key = [key for field in plan.table.key_schema for key in sort_keys(plain(cells[f"key.{field.name}"]))]
    order = sort_order([*by_key, (kind == PANE_KIND).astype(np.int64), from_us])
    cells, from_us, to_us, index = cells.take(pa.array(order)), from_us[order], to_us[order], index[order]
    block = make_block(
        len(order),
        kind=kind[order].astype(np.int8),
        timing=np.where(late[order], LATE, ON_TIME).astype(np.int8),
        windowless=True,
        index=index,
        on_time_index=index,
        is_first=index == 0,
        is_last=plan.is_final,
        pane_time_us=from_us,
    )
    table = plan.table
    keys = {field.name: cells[f"key.{field.name}"] for field in table.key_schema}
    values = {field.name: cells[f"value.{field.name}"] for field in table.value_schema}
    values[VALID_FROM] = timestamp_column(from_us, np.zeros(len(order), dtype=bool))
    values[VALID_TO] = pa.array(to_us, mask=to_us == END_OF_TIME_US).cast(TIMESTAMP)
    return Updates(block, pa.table(keys), pa.table(values))


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
        drops, out = Drops(plan.gives.schema, self.dropped), list[Updates]()
        if not table.takes.is_panes:
            self._table.forget(clocks.watermark_us)
        for changes in from_shards(payloads).values():
            judged_us = before_us if table.takes.is_panes else clocks.watermark_us
            keys = {name: changes[f"key.{name}"].combine_chunks() for name in table.key_schema.names}
            folded = self.take_changes(changes, judged_us, drops=drops, keys=keys)
            if folded is not None:
                out.append(version_rows(plan, folded))
        if table.takes.is_panes:
            self._table.forget(clocks.watermark_us)
        return [*drops.updates, *out]


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

    def stored(self, store: Store) -> Iterator[StoredPart]:
        yield from stored_versions(store, self.stored_keys.names, "versions")

    def tables(self) -> Sequence[KeyedTable]:
        return [versions_table(self.plan.table, self.policy)]

    def notes(self) -> Sequence[Note]:
        return [table_note(self.plan.table, self.identity)]
