"""A window stage bound to its data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.accumulations.base.accumulation import merged_name
from beamish.contract.conditions import columns_of_where
from beamish.contract.operator import Cadence
from beamish.contract.pane_columns import Block
from beamish.contract.signs import sign_column
from beamish.contract.store import Store
from beamish.contract.updates import Updates, UpdatingOperator, UpdatingShard
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kinds.window.firing import extract, repeats
from beamish.kinds.window.joining import joined
from beamish.kinds.window.merging import combine_states
from beamish.kinds.window.output import pane_table
from beamish.kinds.window.packing import pack_rows, shard_of
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.rows_taken import rows_taken
from beamish.kinds.window.several import SeveralShards, pack_each
from beamish.kinds.window.shard import WindowShard
from beamish.kinds.window.unusable import wanted_and_unusable
from beamish.tables.notes import check_held
from beamish.tables.segment_policy import DEFAULT_POLICY, SegmentPolicy


@attrs.define(slots=False, eq=False)
class WindowOperator(UpdatingOperator):
    """The operator of a window stage, under one windowing or several (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
        policy: how its shards' windows are cut into segments.
        waits_for_pane: under a suppress, whether what a merged window takes back waits for its next pane.
    """

    plan: WindowPlan
    policy: SegmentPolicy = DEFAULT_POLICY
    waits_for_pane: bool = attrs.field(default=False, kw_only=True)

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

    def observe(self) -> None:
        for plan in (self.plan, *self.plan.windowings.values()):
            plan.observed = True

    def open(self, store: Store) -> UpdatingShard:
        shard_kind = SeveralShards if self.plan.windowings else WindowShard
        shard = shard_kind(self.plan, store, self.policy)
        if not self.plan.suppressed:
            check_held(shard.held, None)
        return shard

    # Updates for a suppress (contract/updates.py)

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """Whether panes hold only what is new."""
        return self.plan.gives_accumulators

    @property
    def key_schema(self) -> pa.Schema:
        """The key columns of updates."""
        return self.plan.output_key_schema

    def shard_of(self, keys: pa.Table) -> int:
        return shard_of(self.plan, keys)

    @property
    def value_schema(self) -> pa.Schema:
        """What an update holds."""
        return self.plan.state_schema if self.adds_up else self.plan.value_schema

    def combine(self, values: pa.Table, groups: Groups) -> pa.Table:
        return combine_states(self.plan, values, groups)

    def closes_us(self, end_us: Ints) -> Ints:
        return self.plan.expiry_us(end_us)  # type: ignore[no-any-return]

    def replaces_unseen(self, columns: Block) -> Flags:
        return repeats(self.plan, columns["index"])

    def rows(self, updates: Updates) -> pa.Table:
        values = extract(self.plan, updates.values) if self.adds_up else updates.values
        return pane_table(self.plan, updates.columns, updates.keys, values)
