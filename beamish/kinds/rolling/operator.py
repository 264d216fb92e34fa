"""A stage of rolling spans bound to its data (see ``contract/operator.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, Keeps
from beamish.contract.operator import Operator, Shard
from beamish.contract.slots import Slots
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.stored_keys import StoredPart
from beamish.kinds.rolling.at_rest import NAME, LiveRows, stored_parts
from beamish.kinds.rolling.past import past_table
from beamish.kinds.rolling.plan import RollingPlan
from beamish.kinds.rolling.shard import RollingShard
from beamish.kinds.rolling.tables import DEFAULT_POLICY, rows_table, slices_table, totals_table
from beamish.kinds.window.operator import WindowOperator
from beamish.tables.notes import check_held
from beamish.tables.timed_records import SpanPolicy


@attrs.define(slots=False, eq=False)
class RollingOperator(Operator):
    """The operator of a stage of rolling spans.

    Attributes:
        plan: the stage's plan.
        policy: how slices are partitioned into segments.
        suppressed: whether a suppress follows.
    """

    plan: RollingPlan
    policy: SpanPolicy = DEFAULT_POLICY
    suppressed: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self._rows = WindowOperator(plan.of)
        self.takes, self.shards, self.identity = plan.of.takes, plan.of.shards, plan.identity
        self.gives = attrs.evolve(plan.gives, schema=plan.schema)
        self.moves_by([relation.policy for relation in self.takes])

    def reads(self, number: int) -> Sequence[str]:
        return self._rows.reads(number)

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        return self._rows.pack(number, rows)

    def pack_pieces(self, number: int, pieces: Iterable[pa.Table]) -> Iterator[tuple[int, bytes]]:
        return self._rows.pack_pieces(number, pieces)

    def observe(self) -> None:
        self._rows.observe()

    def open(self, store: Store) -> Shard:
        shard = RollingShard(self, self.plan, store, self.policy)
        if not self.suppressed:
            check_held(shard.held, None)
        return shard

    @cached_property
    def slots(self) -> Slots:
        plan = self.plan
        return attrs.evolve(super().slots, replaces_unseen=lambda columns: (columns["index"] > 0) & (not plan.retracts))

    def tables(self) -> Sequence[KeyedTable]:
        past = [past_table(self.plan)] if self.plan.has_lifetime else []
        return [slices_table(self.plan, self.policy), totals_table(self.plan), rows_table(self.plan), *past]

    def notes(self) -> Sequence[Note]:
        return [RollingShard.note(self.identity)]

    def answer(self, asked: Asked) -> Answer:
        return LiveRows(self, NAME, self.plan) if asked.what is Keeps.HELD else super().answer(asked)

    def stored(self, store: Store) -> Iterator[StoredPart]:
        return stored_parts(self.plan, store, self.open(store).clocks.watermark_us)
