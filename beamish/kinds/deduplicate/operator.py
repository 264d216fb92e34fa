"""The operator of a deduplication stage: its packing and its shards.

The state of a shard is the stored ids (remembered.py), and one entry, ``duplicates``: JSON with the clocks and the number of
dropped rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.drops import DUPLICATE, OUT_OF_RETENTION, TAKEN, Counts, Drops, structs, why_dropped
from beamish.contract.keys import from_shards, times_of, to_shards
from beamish.contract.operator import Operator, Shard
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.stored_keys import StoredPart
from beamish.contract.updates import Updates
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import cast
from beamish.kernels.column_names import EVENT_TIME
from beamish.kinds.deduplicate.plan import DuplicatesPlan
from beamish.kinds.deduplicate.remembered import DEFAULT_POLICY, RememberedIds, first_come, ids_of, ids_table
from beamish.tables.notes import DUPLICATES, NotedShard
from beamish.tables.timed_records import SpanPolicy
from beamish.watermarks import NO_WATERMARK_US


class DuplicatesShard(NotedShard):
    """Some of the ids of such a stage (see ``contract/operator.py``)."""

    ENTRY, HOLDS, BY = DUPLICATES, "ids", "deduplicate(...)"

    def __init__(self, operator: Operator, plan: DuplicatesPlan, store: Store, remembered: RememberedIds) -> None:
        super().__init__(operator, store)
        self._plan, self._remembered = plan, remembered

    @property
    def next_due_us(self) -> int | None:
        return self._remembered.next_due_us

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        takes = self._plan.takes
        before_us, _ = self.clocks.step([takes.policy], sources_us, clock_us)
        self._counts = Counts(0)
        judged_us = before_us if takes.is_panes else self.clocks.watermark_us
        return self._take(from_shards(payloads)[0], judged_us) if payloads else []

    def _take(self, rows: pa.Table, watermark_us: int) -> list[Updates]:
        """The dropped rows, if they are listed, and the emitted ones."""
        plan = self._plan
        why = why_dropped(rows[EVENT_TIME], None, NO_WATERMARK_US)
        time_us = pc.fill_null(rows[EVENT_TIME], 0).to_numpy()
        timed = np.flatnonzero(why == TAKEN)
        why[timed[self._remembered.too_old(time_us[timed], watermark_us)]] = OUT_OF_RETENTION
        at = np.flatnonzero(why == TAKEN)
        at = at[first_come(at, [time_us], rows.select(plan.schema.names), plan.schema.names)]
        own = rows.take(pa.array(at))
        again = self._remembered.take(ids_of(own, plan.id_schema.names), time_us[at], watermark_us)
        why[at[again]] = DUPLICATE
        drops = Drops(plan.gives.schema, self.dropped)
        keys = {name: rows[name].combine_chunks() for name in plan.gives.keys}
        drops.add(why, time_us, watermark_us, keys, structs(rows, plan.takes.own_columns) if drops.lists else None)
        late = (why[timed] == OUT_OF_RETENTION) & (watermark_us != END_OF_TIME_US)
        late_by_us = int((watermark_us - time_us[timed][late]).max()) if late.any() else None
        self._counts = Counts(int((~again).sum()), late_by_us)
        new = own.filter(pa.array(~again)).select(plan.value_schema.names)
        return [*drops.updates, Updates.of_rows(new, time_us[at][~again])]

    def save(self) -> None:
        self._remembered.save(self.clocks.watermark_us)
        super().save()


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
        yield from to_shards(rows, keys, self.plan.takes, number, self.shards)

    def open(self, store: Store) -> Shard:
        return DuplicatesShard(self, self.plan, store, self._remembered(store))

    @property
    def stored_keys(self) -> pa.Schema:
        return self.plan.id_schema

    @property
    def sharded_by(self) -> Sequence[str]:
        return [self.plan.id_schema.names[place] for place in self.plan.key_of_ids]

    def stored(self, store: Store) -> Iterator[StoredPart]:
        plan, ids = self.plan, self._remembered(store).stored()
        until_us = ids["until_us"]
        time_us = until_us - plan.within_us
        yield StoredPart(
            "ids of rows",
            ids.cells.rename_columns(plan.id_schema.names),
            time_us,
            time_us,
            due_us=until_us,
            then="the first of them expires, and a row with it is emitted again",
            ends_us=until_us,
        )

    def tables(self) -> Sequence[KeyedTable]:
        return [ids_table(self.plan.id_schema, self.plan.key_of_ids, self._remembered)]

    def notes(self) -> Sequence[Note]:
        return [DuplicatesShard.note(self.identity)]

    def _remembered(self, store: Store) -> RememberedIds:
        return RememberedIds(self.plan.id_schema, self.plan.within_us, store, self.policy)
