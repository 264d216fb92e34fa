"""A window stage bound to its data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import pyarrow as pa

from beamish.accumulations.adapters.one_input import merged_name
from beamish.engine.operator import Cadence, Operator, Shard
from beamish.engine.state import DEFAULT_POLICY, SegmentPolicy, Store
from beamish.engine.state.compatibility import check_unnamed
from beamish.engine.windowing.packing import pack_rows
from beamish.engine.windowing.rows_taken import rows_taken
from beamish.engine.windowing.several import SeveralShards, pack_each
from beamish.engine.windowing.shard import WindowShard
from beamish.plan.window_plan import WindowPlan


@attrs.define(slots=False, eq=False)
class WindowOperator(Operator):
    """The operator of a window stage, under one windowing or several (see ``engine/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how its shards' windows are cut into segments.
    """

    plan: WindowPlan
    policy: SegmentPolicy = DEFAULT_POLICY

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards = plan.takes, plan.gives, plan.shards
        self.needs_clock = plan.options.trigger.needs_clock or any(policy.needs_clock for policy in plan.policies)
        # idle_timeout counts steps.
        counts = any(policy.idle_timeout is not None for policy in plan.policies)
        self.cadence = Cadence.EVERY_STEP if counts else Cadence.WHEN_DUE
        self.identity = plan.identity
        if plan.windowings:
            self.identity = {"windowings": {name: one.identity for name, one in plan.windowings.items()}}

    def reads(self, number: int) -> Sequence[str]:
        relation, plan = self.plan.takes[number], self.plan
        if not plan.has_several_inputs:
            return [name for name in plan.columns if name in relation.columns.names]
        name, travels = str(relation.name), set(plan.columns)
        return [
            column
            for column in relation.columns.names
            if column in relation.keys or merged_name(name, column) in travels
        ]

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        if not rows.num_rows:
            return
        rows = rows_taken(self.plan, number, rows)
        yield from pack_each(self.plan, number, rows) if self.plan.windowings else pack_rows(self.plan, number, rows)

    def open(self, store: Store) -> Shard:
        if self.plan.windowings:
            return SeveralShards(self.plan, store, self.policy)
        check_unnamed(store)
        return WindowShard(self.plan, store, self.policy)
