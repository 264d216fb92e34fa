"""A window stage bound to its data, and its declared state: windows, tables by key, and metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.accumulations.base.accumulation import merged_name
from beamish.contract.at_rest import Answer, Asked, Compared
from beamish.contract.inputs import columns_of_where, sign_column
from beamish.contract.operator import Finish, Native, Operator, Shard
from beamish.contract.relation import Relation
from beamish.contract.stored import INDEX, TAKES, KeyedTable, Note, Segments, Store, note_takes
from beamish.contract.updates import Block, Updates
from beamish.errors import StateError
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kinds.refine import Refinement
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
        refines: whether ``with_columns`` and ``having`` apply to its panes.
        waits_for_pane: under a suppress, whether retractions of merged-away windows wait for the merged window's next pane.
        of: its output, before refinement.
    """

    plan: WindowPlan
    policy: SegmentPolicy = DEFAULT_POLICY
    refines: bool = attrs.field(default=True, kw_only=True)
    waits_for_pane: bool = attrs.field(default=False, kw_only=True)
    of: Relation = attrs.field(default=attrs.Factory(lambda self: self.plan.gives, takes_self=True), kw_only=True)

    def __attrs_post_init__(self) -> None:
        plan, options = self.plan, self.plan.options
        self.takes, self.shards = plan.takes, plan.shards
        refines = self.refines and (options.derived or options.having is not None)
        self._refinement = Refinement(self.of, options.derived, options.having) if refines else None
        self.gives = self.of if self._refinement is None else self._refinement.gives
        self.adds_up = plan.suppressed and options.discards
        self.value_schema = plan.state_schema if self.adds_up else plan.value_schema
        self.moves_by([relation.policy for relation in plan.takes])
        self.needs_clock |= options.trigger.needs_clock
        self.identity = plan.spec

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

    def open(self, store: Store) -> Shard:
        shard = self._opened(store)
        if not self.plan.suppressed:
            check_held(shard.held, None)
        return shard

    def _opened(self, store: Store) -> Shard:
        return WindowShard(self, self.plan, store, self.policy)

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

    @property
    def unfinished(self) -> tuple[Operator, Finish | None]:
        if self._refinement is None:
            return self, None
        return attrs.evolve(self, refines=False), self._refinement.refined_batches

    # Rows of updates, and what a suppress asks

    def rows(self, updates: Sequence[Updates]) -> pa.Table:
        rows = self.panes(updates)
        return rows if self._refinement is None else self._refinement.refine(rows)

    def panes(self, updates: Sequence[Updates]) -> pa.Table:
        schema = self.of.schema
        assert schema is not None  # noqa: S101 - it is bound
        return pa.concat_tables([self._whole(part).rows(schema) for part in updates] or [schema.empty_table()])

    def _whole(self, updates: Updates) -> Updates:
        """Updates that a suppress took, with the values of the output."""
        if not (self.plan.suppressed and updates.values.num_columns):
            return updates
        if self.adds_up:
            updates = attrs.evolve(updates, values=extract(self.plan, updates.values))
        return updates if self.plan.join is None else exploded(self.plan, updates)

    def combine(self, values: pa.Table, groups: Groups) -> pa.Table:
        return combine_states(self.plan, values, groups)

    def closes_us(self, end_us: Ints) -> Ints:
        return self.plan.expiry_us(end_us)  # type: ignore[no-any-return]

    def replaces_unseen(self, columns: Block) -> Flags:
        return repeats(self.plan, columns["index"])
