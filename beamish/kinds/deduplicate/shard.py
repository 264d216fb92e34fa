"""A shard of a stage that gives each row once.

Its state is the ids that it remembers (remembered.py), and one entry, ``duplicates``: JSON with the clocks and the number of
dropped rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.clocks import Clocks
from beamish.contract.counts import Counts
from beamish.contract.drops import DUPLICATE, OUT_OF_RETENTION, TAKEN, Drops, structs, why_dropped
from beamish.contract.operator import Operator, Shard
from beamish.contract.store import Store
from beamish.contract.updates import Updates
from beamish.instants import END_OF_TIME_US
from beamish.kernels.reserved import EVENT_TIME
from beamish.kinds.deduplicate.order import first_come
from beamish.kinds.deduplicate.packing import ids_of, unpack_rows
from beamish.kinds.deduplicate.plan import DuplicatesPlan
from beamish.kinds.deduplicate.remembered import RememberedIds
from beamish.tables.notes import kind_entry, read_note
from beamish.watermarks import NO_WATERMARK_US

ENTRY = kind_entry("duplicates", "a stage without windows that gives rows, each once")
FORMAT = 1


def read_about(store: Store, identity: Mapping[str, Any], call: str) -> dict[str, Any] | None:
    """What is noted in a shard's store; None: it begins.

    Args:
        store: the shard's.
        identity: of the stage: what may not change.
        call: how it is written in a pipeline.

    Raises:
        StateError: it was written by another stage, number of shards or format.
    """
    return read_note(store, ENTRY, identity, FORMAT, holds="ids", by=call)


class DuplicatesShard(Shard):
    """Some of the ids of such a stage (see ``contract/operator.py``).

    Raises:
        StateError: the state was written by another stage, number of shards or format.
    """

    dropped: dict[str, int]

    def __init__(self, operator: Operator, plan: DuplicatesPlan, store: Store, remembered: RememberedIds) -> None:
        self.operator, self._plan, self._store = operator, plan, store
        self._remembered = remembered
        self.clocks, self.dropped = Clocks.new(1), {}
        self._counts = Counts(0)
        about = read_about(store, plan.identity, plan.options.call)
        if about is not None:
            self.clocks, self.dropped = Clocks.of(about["clocks"]), about["dropped"]

    @property
    def next_due_us(self) -> int | None:
        return self._remembered.next_due_us

    @property
    def counts(self) -> Counts:
        return self._counts

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        takes = self._plan.takes
        before_us, _ = self.clocks.step([takes.policy], sources_us, clock_us)
        self._counts = Counts(0)
        judged_us = before_us if takes.is_panes else self.clocks.watermark_us
        return self._take(unpack_rows(payloads), judged_us) if payloads else []

    def _take(self, rows: pa.Table, watermark_us: int) -> list[Updates]:
        """The dropped rows, where they are listed, and those that come out."""
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
        drops.add(why, time_us, watermark_us, keys, structs(rows, plan.schema) if drops.lists else None)
        late = (why[timed] == OUT_OF_RETENTION) & (watermark_us != END_OF_TIME_US)
        late_by_us = int((watermark_us - time_us[timed][late]).max()) if late.any() else None
        self._counts = Counts(int((~again).sum()), late_by_us)
        new = own.filter(pa.array(~again)).select(plan.value_schema.names)
        return [*drops.updates, Updates.of_rows(new, time_us[at][~again])]

    def save(self, held: Mapping[str, Any] | None = None) -> None:
        self._remembered.save(self.clocks.watermark_us)
        about = {
            "format": FORMAT,
            "identity": self._plan.identity,
            "clocks": attrs.asdict(self.clocks),
            "dropped": self.dropped,
        }
        self._store.put(ENTRY, json.dumps(about).encode())
