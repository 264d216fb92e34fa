"""A window stage bound to its data, and its declared state: windows, tables by key, and metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import attrs
import pyarrow as pa

from beamish.accumulations.base.accumulation import merged_name
from beamish.contract.at_rest import Answer, Asked, Compared
from beamish.contract.inputs import columns_of_where, sign_column
from beamish.contract.operator import Cadence, Native, Operator
from beamish.contract.slots import Slots
from beamish.contract.stored import INDEX, TAKES, KeyedTable, Note, Segments, Store, note_takes
from beamish.contract.updates import Updates
from beamish.errors import StateError
from beamish.kinds.window.parts.row_errors import wanted_and_unusable
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.compatibility import REMOVED, all_refused, changeable, compared, in_words
from beamish.kinds.window.state.segments import LAYOUT, layout_facts
from beamish.kinds.window.step.firing import extract, repeats
from beamish.kinds.window.step.merging import combine_states
from beamish.kinds.window.step.packing import joined, pack_rows, rows_taken
from beamish.kinds.window.step.shard import WindowShard
from beamish.kinds.window.step.step import exploded
from beamish.kinds.window.words import describe_shuffled, describe_stored
from beamish.tables.notes import FORMAT, check_held, check_new, check_unnamed
from beamish.tables.older import OLDER
from beamish.tables.records import keyed_schema
from beamish.tables.segment_policy import DEFAULT_POLICY, SegmentPolicy
from beamish.tables.segments import SegmentStore


def tables_of(plan: WindowPlan) -> Iterator[KeyedTable]:
    """The tables of a window stage."""
    yield KeyedTable(LAYOUT, keyed_schema(plan.key_schema), lambda store, parts: _restore(plan, store, parts))
    for part in (plan.progress, *plan.parts):
        yield from part.tables(plan)


def _restore(plan: WindowPlan, store: Store, parts: Sequence[Segments]) -> None:
    into = SegmentStore(store, LAYOUT)
    for part in parts:
        for at, number in enumerate(part.index["segment"].tolist()):
            entry = {name: int(part.index[name][at]) for name in LAYOUT.columns}
            into.write(len(into.index["segment"]), part.read(number), entry, part.read_companions(number))
    into.about["by_key"] = "by_key" not in layout_facts(plan)  # so the first step cuts all segments anew
    into.save()


def note_of(plan: WindowPlan) -> Note:
    """The metadata of a window stage, which is that of its index."""

    def read(store: Store) -> dict[str, Any] | None:
        segments = SegmentStore(store, LAYOUT)
        return None if segments.is_new else segments.about

    def write(store: Store, about: Mapping[str, Any]) -> None:
        segments = SegmentStore(store, LAYOUT)
        segments.about = {name: value for name, value in about.items() if name != OLDER}
        segments.save()
        note_takes(store, plan.takes)

    def check(store: Store) -> None:
        about = read(store)
        for refused in () if about is None else all_refused(about["spec"], plan):
            if refused.what != "shards" and refused.means != REMOVED:
                raise StateError(f"migrate: {in_words(refused)}")
        check_new(store, INDEX)
        check_unnamed(store)

    def stage(about: Mapping[str, Any]) -> dict[str, Any]:
        return {"format": FORMAT, "spec": {**plan.spec, "changeable": about["spec"]["changeable"]}}

    return Note(stage, frozenset([TAKES]), read, write, check)


@attrs.define(slots=False, eq=False)
class WindowOperator(Operator):
    """The operator of a window stage (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how windows are partitioned into segments.
        waits_for_pane: under a suppress, whether retractions of merged-away windows wait for the merged window's next pane.
    """

    plan: WindowPlan
    policy: SegmentPolicy = DEFAULT_POLICY
    waits_for_pane: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.shards, self.gives, self.identity = plan.takes, plan.shards, plan.gives, plan.spec
        self.moves_by([relation.policy for relation in plan.takes])
        self.needs_clock |= plan.options.trigger.needs_clock or plan.progress.needs_clock
        if plan.options.key_watermark is not None:  # rows move watermarks in the next step, which may have none
            self.cadence, self.holds_watermark = Cadence.EVERY_STEP, True

    def reads(self, number: int) -> Sequence[str]:
        relation, plan = self.plan.takes[number], self.plan
        if not plan.has_several_inputs:
            asked = {*plan.schema.names, *columns_of_where(attrs.evolve(relation, where=plan.options.where))}
            own = [name for name in relation.columns.names if name in asked]
            return [*own, *sign_column(relation)]
        name, travels = str(relation.name), set(plan.schema.names)
        asked = {*relation.keys, *columns_of_where(relation)}
        own = [column for column in relation.columns.names if column in asked or merged_name(name, column) in travels]
        return [*own, *sign_column(relation)]

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        for wanted, about in wanted_and_unusable([self.plan], number, rows) if rows.num_rows else ():
            yield from pack_rows(self.plan, number, rows_taken(self.plan, number, wanted), **about)

    def pack_pieces(self, number: int, pieces: Iterable[pa.Table]) -> Iterator[tuple[int, bytes]]:
        return joined((each for rows in pieces for each in self.pack(number, rows)), lambda _: self.plan)

    def tables(self) -> Sequence[KeyedTable]:
        return list(tables_of(self.plan))

    def notes(self) -> Sequence[Note]:
        return [note_of(self.plan)]

    def observe(self) -> None:
        self.plan.observed = True

    def open(self, store: Store) -> WindowShard:
        shard = WindowShard(self, self.plan, store, self.policy)
        if not self.plan.suppressed:
            check_held(shard.held, None)
        return shard

    def described(self) -> Iterator[tuple[str, str]]:
        """Subjects and words, for explain."""
        yield "carried", describe_shuffled(self.plan)
        yield "state", describe_stored(self.plan)

    # The stored state, for inspection (stored/at_rest.py)

    def answer(self, asked: Asked) -> Answer:
        from beamish.kinds.window.stored.at_rest import answer_of
        from beamish.kinds.window.stored.read_plan import ReadPlan

        return answer_of(ReadPlan(self.plan), asked)

    def compared(self, store: Store) -> Iterator[Compared]:
        return compared(self.plan, store)

    def changeable(self, store: Store) -> Mapping[str, Any] | None:
        return changeable(store)

    # In a batch (spark/compile/batch.py)

    @property
    def native(self) -> Native:
        return Native(Native.AGGREGATION, self.plan)

    # Updates, by slot and as rows

    @cached_property
    def slots(self) -> Slots:
        plan = self.plan
        combines = {"combine": partial(combine_states, plan)} if plan.adds_up else {}
        return Slots(
            **combines,
            keys=plan.key_schema,
            values=plan.state_schema if plan.adds_up else plan.value_schema,
            waits_for_pane=self.waits_for_pane,
            closes_us=plan.expiry_us,
            replaces_unseen=lambda columns: repeats(plan, columns["index"]),
        )

    def rows(self, updates: Sequence[Updates]) -> pa.Table:
        return super().rows([self.extracted(part) for part in updates])

    def extracted(self, updates: Updates) -> Updates:
        """Updates that a suppress took, with the values of the output."""
        if not (self.plan.suppressed and updates.values.num_columns):
            return updates
        if self.plan.adds_up:
            updates = attrs.evolve(updates, values=extract(self.plan, updates.values))
        return updates if self.plan.exploding is None else exploded(self.plan, updates)
