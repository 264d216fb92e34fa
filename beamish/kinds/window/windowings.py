"""Several windowings of the same rows: an operator that fans out to a window operator for each.

Each windowing has a state of its own under its name, and clocks of its own, which all see the same steps. Rows come
in one delivery: summed up once for each windowing that allows it, and as rows once for all others. A payload says
which windowings it is for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, Compared
from beamish.contract.counts import Counts
from beamish.contract.kept import KeyedTable, Note
from beamish.contract.operator import Operator, Shard
from beamish.contract.store import Store
from beamish.contract.updates import Updates
from beamish.errors import StateError
from beamish.kinds.window.operator import WindowOperator
from beamish.kinds.window.packing import about
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.read_identity import ReadPlan
from beamish.kinds.window.shard import WindowShard
from beamish.kinds.window.windowings_at_rest import answer_of_each, dropped_of_windowings, with_windowing
from beamish.kinds.window.words import carried, kept
from beamish.tables.notes import check_new
from beamish.tables.prefixed import StoreUnder
from beamish.tables.stored_tables import INDEX, WINDOWINGS


@attrs.define(slots=False, eq=False, kw_only=True)
class WindowingsOperator(WindowOperator):
    """Window operators over the same rows (see ``contract/operator.py``); what all have in common is asked of the first.

    Attributes:
        plans: by the names of the windowings.
        each: the operators.
    """

    plans: Mapping[str, WindowPlan]
    each: Mapping[str, WindowOperator] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.each = {name: WindowOperator(plan, self.policy, refines=False) for name, plan in self.plans.items()}
        self.identity = {"windowings": {name: plan.identity for name, plan in self.plans.items()}}

    def reads(self, number: int) -> Sequence[str]:
        return list(dict.fromkeys(name for one in self.each.values() for name in one.reads(number)))

    def packed(self, number: int, wanted: pa.Table, about: Mapping[str, Any]) -> Iterator[tuple[int, bytes]]:
        for numbers, one in self._deliveries():
            yield from one.packed(number, wanted, {"windowings": numbers, **about})

    def _deliveries(self) -> Iterator[tuple[list[int], WindowOperator]]:
        """Which windowings have a payload in common, and the operator that packs it."""
        as_rows: dict[tuple[str, ...], list[int]] = {}
        each = list(self.each.values())
        for number, one in enumerate(each):
            if one.plan.preaggregates:
                yield [number], one
            else:
                as_rows.setdefault(one.plan.columns, []).append(number)
        for numbers in as_rows.values():
            yield numbers, each[numbers[0]]

    @property
    def _plans(self) -> Sequence[WindowPlan]:
        return list(self.plans.values())

    def _plan_of(self, payload: bytes) -> WindowPlan:
        return self._plans[_windowings_of(payload)[0]]

    def tables(self) -> Sequence[KeyedTable]:
        return [_table_under(name, table) for name, one in self.each.items() for table in one.tables()]

    def notes(self) -> Sequence[Note]:
        return [_note_under(name, note, self.plans) for name, one in self.each.items() for note in one.notes()]

    def observe(self) -> None:
        for one in self.each.values():
            one.observe()

    def _opened(self, store: Store) -> Shard:
        return WindowingsShard(self, self.each, store)

    def answer(self, asked: Asked) -> Answer:
        return answer_of_each({name: ReadPlan(plan) for name, plan in self.plans.items()}, asked)

    def compared(self, store: Store) -> Iterator[Compared]:
        for name, one in self.each.items():
            yield from one.compared(StoreUnder(name, store))

    @property
    def parts(self) -> Mapping[str | None, Operator]:
        return dict(self.each.items())

    def described(self) -> Iterator[tuple[str, str]]:
        yield "carried", "; ".join(f"{name}: {carried(plan)}" for name, plan in self.plans.items())
        yield "state", kept(self.plan, per="windowing, key and window")


def _windowings_of(payload: bytes) -> list[int]:
    """The numbers of the windowings that a payload is for."""
    return about(payload)["windowings"]  # type: ignore[no-any-return]


class WindowingsShard(Shard):
    """Some of the keys of a stage with several windowings (see ``contract/operator.py``).

    Raises:
        StateError: the state is of one windowing without a name, has a windowing that the pipeline no longer has, or
            was written by another pipeline.
    """

    dropped: dict[str, int]

    def __init__(self, operator: Operator, each: Mapping[str, WindowOperator], store: Store) -> None:
        _note_names(each, store)
        self.operator, self._place = operator, len(operator.takes[0].keys)
        self._shards = {
            name: WindowShard(one, one.plan, StoreUnder(name, store), one.policy) for name, one in each.items()
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
        numbers = [_windowings_of(payload) for payload in payloads]
        parts: list[Updates] = []
        for number, (name, shard) in enumerate(self._shards.items()):
            own = [payload for payload, of in zip(payloads, numbers, strict=True) if number in of]
            parts.extend(
                attrs.evolve(part, keys=with_windowing(part.keys, self._place, name))
                for part in shard.updates(sources_us, clock_us, own)
            )
        self._add_up_drops()
        return parts

    def save(self, held: Mapping[str, Any] | None = None) -> None:
        for shard in self._shards.values():
            shard.save(held)

    def _add_up_drops(self) -> None:
        """Rows dropped from windows of all windowings; a row in none of them counts once."""
        self.dropped |= dropped_of_windowings(shard.dropped for shard in self._shards.values())

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


def _note_names(names: Collection[str], store: Store) -> None:
    """Keep the windowings' names."""
    if _checked_names(names, store) != list(names):
        store.put(WINDOWINGS, json.dumps(list(names)).encode())


def _checked_names(names: Collection[str], store: Store) -> list[str]:
    """The names that a state has; each must stay, since nothing would close its windows."""
    stored: list[str] = json.loads(store.get(WINDOWINGS) or "[]")
    if not stored:
        if store.get(INDEX) is not None:
            raise StateError(
                "the checkpoint has one windowing without a name, the pipeline has "
                f"{', '.join(map(repr, names))}: its windows would be forgotten; keep the plain .window(...), or "
                "start from a new checkpoint"
            )
        check_new(store, WINDOWINGS)
    gone = [name for name in stored if name not in names]
    if gone:
        raise StateError(
            f"the checkpoint has windows of {', '.join(map(repr, gone))}, the pipeline has only "
            f"{', '.join(map(repr, names))}: their panes would be lost; keep the windowing (new ones may be "
            "added), or start from a new checkpoint"
        )
    return stored


def _table_under(name: str, table: KeyedTable) -> KeyedTable:
    """The table of a windowing, among the entries of all."""
    layout = attrs.evolve(table.layout, name=f"{name}/{table.layout.name}".removesuffix("/"))
    restore = table.restore
    return attrs.evolve(table, layout=layout, restore=lambda store, parts: restore(StoreUnder(name, store), parts))


def _note_under(name: str, note: Note, names: Collection[str]) -> Note:
    """The metadata of a windowing, among the entries of all."""

    def write(store: Store, metadata: Mapping[str, Any]) -> None:
        note.write(StoreUnder(name, store), metadata)
        store.put(WINDOWINGS, json.dumps(list(names)).encode())

    def check(store: Store) -> None:
        note.check(StoreUnder(name, store))
        _checked_names(names, store)

    entries = frozenset([WINDOWINGS, *(f"{name}/{entry}" for entry in note.entries)])
    return attrs.evolve(
        note, entries=entries, read=lambda store: note.read(StoreUnder(name, store)), write=write, check=check
    )
