"""A window stage bound to its data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import pyarrow as pa

from beamish.accumulations.adapters.one_input import merged_name
from beamish.engine.operator import Cadence, Shard
from beamish.engine.state import DEFAULT_POLICY, SegmentPolicy, Store
from beamish.engine.state.compatibility import check_unnamed
from beamish.engine.windowing.packing import pack
from beamish.engine.windowing.rows_taken import rows_taken
from beamish.engine.windowing.several import SeveralShards, pack_each
from beamish.engine.windowing.shard import WindowShard
from beamish.plan.identity import identity_of_plan
from beamish.plan.relation import Relation
from beamish.plan.window_plan import WindowPlan


@attrs.define(slots=False, eq=False)
class WindowOperator:
    """The operator of a window stage, under one windowing or several (see ``engine/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how its shards' windows are cut into segments.
    """

    plan: WindowPlan
    policy: SegmentPolicy = DEFAULT_POLICY

    @property
    def takes(self) -> Sequence[Relation]:
        return self.plan.takes

    @property
    def gives(self) -> Relation:
        return self.plan.gives

    @property
    def shards(self) -> int:
        return self.plan.shards

    @property
    def needs_clock(self) -> bool:
        policies = self.plan.policies
        return self.plan.options.trigger.needs_clock or any(policy.needs_clock for policy in policies)

    @property
    def cadence(self) -> Cadence:
        """Panes come in before the watermark moves, so it must move in each step; idle_timeout counts steps."""
        counts = any(policy.needs_clock and policy.moved_by_rows for policy in self.plan.policies)
        return Cadence.EVERY_STEP if self.plan.takes_panes or counts else Cadence.WHEN_DUE

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        if not self.plan.windowings:
            return identity_of_plan(self.plan)
        return {"windowings": {name: identity_of_plan(plan) for name, plan in self.plan.windowings.items()}}

    def reads(self, source: int) -> Sequence[str]:
        relation, plan = self.plan.takes[source], self.plan
        if not plan.merges:
            return [name for name in plan.columns if name in relation.columns.names]
        name, travels = str(relation.name), set(plan.columns)
        return [
            column
            for column in relation.columns.names
            if column in relation.keys or merged_name(name, column) in travels
        ]

    def pack(self, source: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        if not rows.num_rows:
            return
        rows = rows_taken(self.plan, source, rows)
        yield from pack_each(self.plan, source, rows) if self.plan.windowings else pack(self.plan, source, rows)

    def open(self, store: Store) -> Shard:
        if self.plan.windowings:
            return SeveralShards(self.plan, store, self.policy)
        check_unnamed(store)
        return WindowShard(self.plan, store, self.policy)
