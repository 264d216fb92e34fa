"""A window stage bound to its data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.accumulations.base.accumulation import merged_name
from beamish.contract.at_rest import Answer, Asked, Compared, Keeps
from beamish.contract.conditions import columns_of_where
from beamish.contract.kept import KeyedTable, Note
from beamish.contract.operator import Finish, Native, Operator, Shard
from beamish.contract.pane_columns import Block
from beamish.contract.signs import sign_column
from beamish.contract.store import Store
from beamish.contract.updates import Updates
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kinds.refine.refinement import Refinement
from beamish.kinds.window.at_rest import Plans, Rows, Windows
from beamish.kinds.window.compatibility import compared
from beamish.kinds.window.firing import extract, repeats
from beamish.kinds.window.joining import joined
from beamish.kinds.window.merging import combine_states
from beamish.kinds.window.output import exploded
from beamish.kinds.window.packing import pack_rows
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.read_identity import ReadPlan
from beamish.kinds.window.rows_taken import rows_taken
from beamish.kinds.window.several import SeveralShards, pack_each
from beamish.kinds.window.shard import WindowShard
from beamish.kinds.window.tables import notes_of, tables_of
from beamish.kinds.window.unusable import wanted_and_unusable
from beamish.tables.notes import check_held
from beamish.tables.prefixed import under
from beamish.tables.segment_policy import DEFAULT_POLICY, SegmentPolicy


@attrs.define(slots=False, eq=False)
class WindowOperator(Operator):
    """The operator of a window stage, under one windowing or several (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how its shards' windows are cut into segments.
        refinement: what is computed of its panes, and left out; None: nothing.
        waits_for_pane: under a suppress, whether what a merged window takes back waits for its next pane.
    """

    plan: WindowPlan
    policy: SegmentPolicy = DEFAULT_POLICY
    refinement: Refinement | None = attrs.field(default=None, kw_only=True)
    waits_for_pane: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.shards = plan.takes, plan.shards
        self.gives = plan.gives if self.refinement is None else self.refinement.gives
        self.adds_up = plan.gives_accumulators
        self.value_schema = plan.state_schema if self.adds_up else plan.value_schema
        self.moves_by(plan.policies)
        self.needs_clock |= plan.options.trigger.needs_clock
        self.identity = plan.identity
        if plan.windowings:
            self.identity = {"windowings": {name: one.identity for name, one in plan.windowings.items()}}

    def reads(self, number: int) -> Sequence[str]:
        relation, plan = self.plan.takes[number], self.plan
        if not plan.has_several_inputs:
            own = [name for name in relation.columns.names if name in plan.columns or name in plan.filtered_by]
            return [*own, *sign_column(relation)]
        name, travels = str(relation.name), set(plan.columns)
        asked = {*relation.keys, *columns_of_where(relation)}
        own = [column for column in relation.columns.names if column in asked or merged_name(name, column) in travels]
        return [*own, *sign_column(relation)]

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        if not rows.num_rows:
            return
        if self.plan.options.drops_errors:
            wanted, errors = wanted_and_unusable(self.plan, number, rows)
            for message, of in errors:
                yield from self._packed(number, of, error=message)
        else:
            wanted = self.plan.only_wanted(number, rows)
        yield from self._packed(number, wanted)

    def _packed(self, number: int, rows: pa.Table, **about: Any) -> Iterator[tuple[int, bytes]]:
        pack = pack_each if self.plan.windowings else pack_rows
        yield from pack(self.plan, number, rows_taken(self.plan, number, rows), **about)

    def pack_pieces(self, number: int, pieces: Iterable[pa.Table]) -> Iterator[tuple[int, bytes]]:
        packed = (each for rows in pieces for each in self.pack(number, rows))
        return joined(self.plan, packed)

    def tables(self) -> Sequence[KeyedTable]:
        return tables_of(self.plan)

    def notes(self) -> Sequence[Note]:
        return notes_of(self.plan)

    def observe(self) -> None:
        for plan in (self.plan, *self.plan.windowings.values()):
            plan.observed = True

    def open(self, store: Store) -> Shard:
        shard_kind = SeveralShards if self.plan.windowings else WindowShard
        shard = shard_kind(self, self.plan, store, self.policy)
        if not self.plan.suppressed:
            check_held(shard.held, None)
        return shard

    # What is kept, to look at (at_rest.py)

    @property
    def plans(self) -> Plans:
        """The plan of each windowing, by name; of one without a name None."""
        return {name: ReadPlan(plan) for name, plan in self.plan.by_windowing.items()}

    def answer(self, asked: Asked) -> Answer:
        return (Rows if asked.what is Keeps.ROWS else Windows).asked(self.plans, asked)

    def compared(self, store: Store) -> Iterator[Compared]:
        for name, plan in self.plan.by_windowing.items():
            yield from compared(plan, under(name, store))

    # In a batch (spark/compile/batch.py)

    @property
    def native(self) -> Native:
        return Native(Native.AGGREGATION, self.plan)

    @property
    def parts(self) -> Mapping[str | None, Operator]:
        of = self.plan.windowings
        return {name: WindowOperator(plan) for name, plan in of.items()} if of else {None: self}

    @property
    def unfinished(self) -> tuple[Operator, Finish | None]:
        if self.refinement is None:
            return self, None
        return attrs.evolve(self, refinement=None), self.refinement.refined_batches

    # Rows of updates, and what a suppress asks

    def rows(self, updates: Sequence[Updates]) -> pa.Table:
        rows = self.panes(updates)
        return rows if self.refinement is None else self.refinement.refine(rows)

    def panes(self, updates: Sequence[Updates]) -> pa.Table:
        schema = self.plan.pane_schema
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
