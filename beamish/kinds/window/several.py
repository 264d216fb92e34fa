"""A shard under several windowings: the shard of each windowing, one after the other, in one store.

Each windowing has a state of its own under its name, and clocks of its own, which all see the same steps. Rows come
in one delivery: summed up once for each windowing that allows it, and as rows once for all others. A payload says
which windowings it is for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.counts import Counts
from beamish.contract.operator import Operator, Shard
from beamish.contract.store import Store
from beamish.contract.updates import Updates
from beamish.errors import StateError
from beamish.kinds.window.drops import dropped_of_windowings
from beamish.kinds.window.packing import about, pack_rows
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.shard import WindowShard
from beamish.tables.notes import check_new
from beamish.tables.prefixed import StoreUnder
from beamish.tables.segment_policy import SegmentPolicy
from beamish.tables.stored_tables import INDEX, WINDOWINGS
from beamish.windows.windowings import WINDOWING


def pack_each(plan: WindowPlan, number: int, rows: pa.Table, **about: Any) -> Iterator[tuple[int, bytes]]:
    """Pack rows (``pack_rows``): one payload per shard and delivery."""
    for numbers, of in _deliveries(plan.windowings):
        yield from pack_rows(of, number, rows, windowings=numbers, **about)


def _deliveries(windowings: Mapping[str, WindowPlan]) -> Iterator[tuple[list[int], WindowPlan]]:
    """Which windowings have a payload in common, and the plan by which it is packed."""
    as_rows: dict[tuple[str, ...], list[int]] = {}
    plans = list(windowings.values())
    for number, plan in enumerate(plans):
        if plan.preaggregates:
            yield [number], plan
        else:
            as_rows.setdefault(plan.columns, []).append(number)
    for numbers in as_rows.values():
        yield numbers, plans[numbers[0]]


class SeveralShards(Shard):
    """Some of the keys of a stage with several windowings (see ``contract/operator.py``).

    Raises:
        StateError: the state is of one windowing without a name, has a windowing that the pipeline no longer has, or
            was written by another pipeline.
    """

    dropped: dict[str, int]

    def __init__(self, operator: Operator, plan: WindowPlan, store: Store, policy: SegmentPolicy) -> None:
        note_names(plan, store)
        self.operator, self._place = operator, len(plan.key_schema)
        self._shards = {
            name: WindowShard(operator, of, StoreUnder(name, store), policy) for name, of in plan.windowings.items()
        }
        # One that is added begins where those that are there stand; these know what is held under a suppress.
        there = [name for name in self._shards if StoreUnder(name, store).get(INDEX) is not None]
        self._first = self._shards[there[0] if there else next(iter(self._shards))]
        for name in self._shards.keys() - there:
            self._shards[name].stand_at(self._first.clocks)
        self.clocks, self.held = self._first.clocks, self._first.held
        self.dropped = {}
        self._add_up_drops()

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        parts = [
            attrs.evolve(updates, keys=self._named(name, updates.keys))
            for name, shard, own in self._each(payloads)
            for updates in shard.updates(sources_us, clock_us, own)
        ]
        self._add_up_drops()
        return parts

    def save(self, held: Mapping[str, Any] | None = None) -> None:
        for shard in self._shards.values():
            shard.save(held)

    def _add_up_drops(self) -> None:
        """Rows dropped from windows of all windowings; a row in none of them counts once."""
        self.dropped |= dropped_of_windowings(shard.dropped for shard in self._shards.values())

    def _each(self, payloads: Sequence[bytes]) -> Iterator[tuple[str, WindowShard, list[bytes]]]:
        """Each windowing, its shard and the payloads that are for it."""
        numbers = [about(payload)["windowings"] for payload in payloads]
        for number, (name, shard) in enumerate(self._shards.items()):
            yield name, shard, [payload for payload, of in zip(payloads, numbers, strict=True) if number in of]

    def _named(self, name: str, rows: pa.Table) -> pa.Table:
        """Rows with the name of their windowing after their key columns."""
        return rows.add_column(self._place, WINDOWING, pa.array([name] * rows.num_rows, pa.string()))

    @property
    def next_due_us(self) -> int | None:
        return min((due for shard in self._shards.values() if (due := shard.next_due_us) is not None), default=None)

    @property
    def counts(self) -> Counts:
        """Of all windowings together."""
        each = [shard.counts for shard in self._shards.values()]
        late = [counts.late_by_us for counts in each if counts.late_by_us is not None]
        return Counts(
            sum(counts.taken or 0 for counts in each),
            max(late, default=None),
            sum(counts.windows or 0 for counts in each),
        )


def note_names(plan: WindowPlan, store: Store) -> None:
    """Keep the windowings' names; one that the state has must stay, since nothing would close its windows."""
    stored = json.loads(store.get(WINDOWINGS) or "[]")
    if not stored:
        if store.get(INDEX) is not None:
            raise StateError(
                "the checkpoint has one windowing without a name, the pipeline has "
                f"{', '.join(map(repr, plan.windowings))}: its windows would be forgotten; keep the plain .window(...), or "
                "start from a new checkpoint"
            )
        check_new(store, WINDOWINGS)
    gone = [name for name in stored if name not in plan.windowings]
    if gone:
        raise StateError(
            f"the checkpoint has windows of {', '.join(map(repr, gone))}, the pipeline has only "
            f"{', '.join(map(repr, plan.windowings))}: their panes would be lost; keep the windowing (new ones may be "
            "added), or start from a new checkpoint"
        )
    if stored != list(plan.windowings):
        store.put(WINDOWINGS, json.dumps(list(plan.windowings)).encode())
