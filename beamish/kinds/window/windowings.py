"""Several windowings of the same rows: an operator that fans out to a window operator for each.

Each windowing has a state of its own under its name, and clocks of its own, which all see the same steps. Rows come
in one delivery: pre-aggregated for each windowing that allows it, and as rows once for all others. A payload states
which windowings it is for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, Compared, Keeps, read_key
from beamish.contract.drops import Counts
from beamish.contract.operator import Operator, Shard
from beamish.contract.relation import Relation
from beamish.contract.slots import Slots
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.updates import Updates
from beamish.errors import StateError
from beamish.kinds.window.operator import WindowOperator
from beamish.kinds.window.parts.row_errors import wanted_and_unusable
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.step.packing import about, joined, pack_rows, rows_taken
from beamish.kinds.window.stored.at_rest import OfWindows, Windows, answer_of
from beamish.kinds.window.stored.counted import Counted
from beamish.kinds.window.stored.read_plan import ReadPlan
from beamish.kinds.window.stored.stored_windows import NotedWindows, noted_windows
from beamish.kinds.window.words import describe_shuffled, describe_stored
from beamish.pane import DropReason
from beamish.tables.entries import INDEX, WINDOWINGS, StoreUnder, under
from beamish.tables.notes import check_new
from beamish.tables.under import note_under, table_under
from beamish.windows.windowings import WINDOWING

Plans = Mapping[str | None, ReadPlan]
"""The plans of a stage, by the name of the windowing; None: a single one."""
_ONCE_PER_ROW = (DropReason.NULL_EVENT_TIME, DropReason.EVENT_TIME_OUT_OF_RANGE, DropReason.NULL_KEY)
_FIELD = pa.field(WINDOWING, pa.string())


@attrs.define(slots=False, eq=False)
class WindowingsOperator(Operator):
    """Window operators over the same rows (see ``contract/operator.py``); what all have in common is read from the first.

    Attributes:
        each: the operators, by the names of the windowings.
        gives: the output of all.
    """

    each: Mapping[str, WindowOperator]
    gives: Relation

    def __attrs_post_init__(self) -> None:
        first = self._first = next(iter(self.each.values()))
        self.takes, self.shards, self.cadence, self.needs_clock = (
            first.takes,
            first.shards,
            first.cadence,
            first.needs_clock,
        )
        self.holds_watermark = first.holds_watermark
        self.identity = {"windowings": {name: plan.spec for name, plan in self.plans.items()}}

    @property
    def plans(self) -> Mapping[str, WindowPlan]:
        """The plan of each."""
        return {name: one.plan for name, one in self.each.items()}

    def reads(self, number: int) -> Sequence[str]:
        return list(dict.fromkeys(name for one in self.each.values() for name in one.reads(number)))

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        plans = list(self.plans.values())
        for wanted, of_them in wanted_and_unusable(plans, number, rows) if rows.num_rows else ():
            for numbers, plan in _deliveries(plans):
                yield from pack_rows(plan, number, rows_taken(plan, number, wanted), windowings=numbers, **of_them)

    def pack_pieces(self, number: int, pieces: Iterable[pa.Table]) -> Iterator[tuple[int, bytes]]:
        packed, plans = (each for rows in pieces for each in self.pack(number, rows)), list(self.plans.values())
        return joined(packed, lambda payload: plans[_windowings_of(payload)[0]])

    def tables(self) -> Sequence[KeyedTable]:
        return [table_under(name, table) for name, one in self.each.items() for table in one.tables()]

    def notes(self) -> Sequence[Note]:
        return [_note_of(name, note, self.plans) for name, one in self.each.items() for note in one.notes()]

    def observe(self) -> None:
        for one in self.each.values():
            one.observe()

    def open(self, store: Store) -> Shard:
        return WindowingsShard(self, self.each, store)

    def answer(self, asked: Asked) -> Answer:
        return answer_of_each({name: ReadPlan(plan) for name, plan in self.plans.items()}, asked)

    def compared(self, store: Store) -> Iterator[Compared]:
        for name, one in self.each.items():
            yield from one.compared(StoreUnder(name, store))

    def changeable(self, store: Store) -> Mapping[str, Any] | None:
        each = (one.changeable(StoreUnder(name, store)) for name, one in self.each.items())
        return next((one for one in each if one is not None), None)

    @property
    def parts(self) -> Mapping[str | None, Operator]:
        return dict(self.each.items())

    @cached_property
    def slots(self) -> Slots:
        slots = self._first.slots
        return attrs.evolve(slots, keys=slots.keys.append(_FIELD))

    def rows(self, updates: Sequence[Updates]) -> pa.Table:
        return super().rows([self._first.extracted(part) for part in updates])

    def described(self) -> Iterator[tuple[str, str]]:
        yield "carried", "; ".join(f"{name}: {describe_shuffled(plan)}" for name, plan in self.plans.items())
        yield "state", describe_stored(self._first.plan, per="windowing, key and window")


def _deliveries(plans: Sequence[WindowPlan]) -> Iterator[tuple[list[int], WindowPlan]]:
    """The windowings that share a payload, and the plan that packs it."""
    as_rows: dict[tuple[str, ...], list[int]] = {}
    for number, plan in enumerate(plans):
        if plan.preaggregates:
            yield [number], plan
        else:
            as_rows.setdefault(tuple(plan.schema.names), []).append(number)
    for numbers in as_rows.values():
        yield numbers, plans[numbers[0]]


def _windowings_of(payload: bytes) -> list[int]:
    """The numbers of the windowings that a payload is for."""
    return about(payload)["windowings"]  # type: ignore[no-any-return]


class WindowingsShard(Shard):
    """Some of the keys of a stage with several windowings (see ``contract/operator.py``).

    Raises:
        StateError: the state has one unnamed windowing, has a windowing that the pipeline no longer has, or
            was written by another pipeline.
    """

    dropped: dict[str, int]

    def __init__(self, operator: Operator, each: Mapping[str, WindowOperator], store: Store) -> None:
        if _checked_names(each, store) != list(each):
            _note_names(each, store)
        self.operator, self._place = operator, len(operator.takes[0].keys)
        self._shards = {name: one.open(StoreUnder(name, store)) for name, one in each.items()}
        # An added windowing starts at the clocks of the stored ones, which have the metadata of a suppress.
        there = [name for name, shard in self._shards.items() if not shard.is_new]
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

    def save(self) -> None:
        for shard in self._shards.values():
            shard.held = self.held
            shard.save()

    def _add_up_drops(self) -> None:
        """Rows dropped from windows of all windowings; a row in none of them counts once."""
        self.dropped |= dropped_of_windowings(shard.dropped for shard in self._shards.values())

    @property
    def watermark_us(self) -> int | None:
        return self._first.watermark_us

    @property
    def next_due_us(self) -> int | None:
        return min((due for shard in self._shards.values() if (due := shard.next_due_us) is not None), default=None)

    @property
    def counts(self) -> Counts:
        """For all windowings together."""
        each = [shard.counts for shard in self._shards.values()]
        late = [counts.late_by_us for counts in each if counts.late_by_us is not None]
        return Counts(
            sum(counts.taken or 0 for counts in each),
            max(late, default=None),
            sum(counts.windows or 0 for counts in each),
        )


def _note_names(names: Collection[str], store: Store) -> None:
    store.put(WINDOWINGS, json.dumps(list(names)).encode())


def _checked_names(names: Collection[str], store: Store) -> list[str]:
    """The stored names; none may be removed, since its windows would never close."""
    stored: list[str] = json.loads(store.get(WINDOWINGS) or "[]")
    if not stored:
        if store.get(INDEX) is not None:
            raise StateError(
                f"the checkpoint has one unnamed windowing, the pipeline has {', '.join(map(repr, names))}: its windows would be "
                "lost; keep the plain .window(...), or start from a new checkpoint"
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


def _note_of(name: str, note: Note, names: Collection[str]) -> Note:
    """The metadata of a windowing, among the entries of all; none may be removed."""
    under = note_under(name, note, WINDOWINGS, partial(_note_names, names))

    def check(store: Store) -> None:
        under.check(store)
        _checked_names(names, store)

    return attrs.evolve(under, check=check)


# The stored state, for inspection: each windowing is read under its name, like a single one


def key_schema(plans: Plans) -> pa.Schema:
    """The columns that identify windows: the keys, and with several windowings ``windowing``."""
    keys = next((of.plan.key_schema for of in plans.values()), pa.schema([]))
    return keys if None in plans or not plans else keys.append(_FIELD)


def with_windowing(rows: pa.Table, place: int, name: str) -> pa.Table:
    """Rows with the name of their windowing at this place."""
    return rows.add_column(place, _FIELD, pa.repeat(pa.scalar(name, pa.string()), rows.num_rows))


def answer_of_each(plans: Plans, asked: Asked, *, segment: str | None = None, **more: Any) -> Answer:
    """The answer of a stage with these plans (see ``answer_of``); ``segment``: the name of the only entry that is read."""
    if None in plans:
        return answer_of(plans[None], asked, segment=segment, **more)
    keys = key_schema(plans)
    key = read_key(asked.what, asked.key, keys)
    meant, asked = key.pop(WINDOWING, None), attrs.evolve(asked, key=key)
    each = {
        str(name): answer_of(of, asked, segment=segment and segment.removeprefix(f"{name}/"), **more)
        for name, of in plans.items()
    }
    return _OfEach(each, meant, len(keys) - 1 if asked.what is Keeps.ROWS else min(len(keys) - 1, 1))


def counted_of_each(plans: Plans, *, clocks: tuple[int, int], edges: tuple[int, ...]) -> Answer:
    """Numbers of windows, for each windowing (see ``Counted``)."""
    return answer_of_each(plans, Asked(Keeps.WINDOWS), kind=Counted, clocks=clocks, edges=edges)


@attrs.define(slots=False, eq=False)
class _OfEach(Answer):
    """An answer from each of several windowings.

    Attributes:
        each: by the name of the windowing.
        meant: the name of the selected one; None: all.
        place: the position of the column ``windowing``.
    """

    each: Mapping[str, OfWindows]
    meant: str | None
    place: int

    def __attrs_post_init__(self) -> None:
        first = next(iter(self.each.values()))
        self.schema = first.schema.insert(self.place, _FIELD)
        self.keys, self.shard = (*first.keys, WINDOWING), first.shard

    def _meant(self, store: Store) -> Iterator[tuple[str, OfWindows, Store]]:
        for name, one in self.each.items():
            if self.meant in (None, name):
                yield name, one, StoreUnder(name, store)

    def needs(self, notes: Store) -> Iterator[str]:
        return (f"{name}/{entry}" for name, one, own in self._meant(notes) for entry in one.needs(own))

    def read(self, store: Store) -> pa.Table:
        tables = [with_windowing(one.read(own), self.place, name) for name, one, own in self._meant(store)]
        return pa.concat_tables([self.schema.empty_table(), *tables])


def noted_windowings(
    notes: Mapping[int, Store], known: Answer | None, **described: Any
) -> Mapping[str | None, NotedWindows]:
    """The windows of each windowing in the notes of a stage's shards (see ``noted_windows``); ``known``: the pipeline's answer about windows."""
    each = known.each if isinstance(known, _OfEach) else {None: known}
    plans = {name: one.of_plan for name, one in each.items() if isinstance(one, Windows)}
    names = next((json.loads(one) for store in notes.values() if (one := store.get(WINDOWINGS)) is not None), [None])
    return {
        name: noted_windows(
            {shard: under(name, store) for shard, store in notes.items()},
            plans.get(name),
            prefix="" if name is None else f"{name}/",
            **described,
        )
        for name in names
    }


def dropped_of_windowings(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The merged counts of several windowings over the same rows: by (row, window), and by row without window.

    Each windowing counts every row that it drops for its event time or its key; the oldest windowing counted all.
    """
    total: dict[str, int] = {}
    for count in counts:
        for reason, rows in count.items():
            so_far = total.get(reason, 0)
            total[reason] = max(so_far, rows) if reason in _ONCE_PER_ROW else so_far + rows
    return total
