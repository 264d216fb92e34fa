"""The plan of a window stage: its options bound to its input's columns and types."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import attrs
import numpy as np
import pyarrow as pa

from beamish.accumulations.base.accumulation import Accumulation
from beamish.accumulations.joins import Join, NullKeys
from beamish.contract.inputs import merged_inputs
from beamish.contract.relation import Relation
from beamish.contract.updates import PANE, TIMESTAMP, dropped_type
from beamish.kernels.column_names import SIGN
from beamish.kernels.groups import Groups
from beamish.kinds.window.plan.binding import BoundAccumulation
from beamish.kinds.window.plan.options import WindowOptions, gives
from beamish.kinds.window.plan.part import Progress, WindowPart
from beamish.kinds.window.plan.spec import columns_of, spec_of
from beamish.windows.option import WindowOption

_END_US = np.iinfo(np.int64).max


@attrs.define(slots=False, eq=False)
class WindowPlan:
    """The plan of a window stage, for the engine.

    Attributes:
        options: its options.
        takes: its inputs, each with its schema.
        schema: the columns that travel to the shards, with their types: keys, what accumulations and windows read;
            all with ``with_dropped``. For a merge see ``inputs.py``.
        shards: number of shards.
        accumulations: bound to their columns, in order.
        suppressed: whether a suppress follows.
        observed: whether the query is observed, so that slices of rows carry their rows' times.
        progress: the progress of its windows.
        parts: the features that the options ask for, in the order of planning.py.
    """

    options: WindowOptions
    takes: tuple[Relation, ...]
    schema: pa.Schema
    shards: int
    accumulations: tuple[BoundAccumulation, ...]
    suppressed: bool = False
    observed: bool = False
    progress: Progress = attrs.field(init=False)
    parts: tuple[WindowPart, ...] = attrs.field(init=False)

    @cached_property
    def signed(self) -> bool:
        """Whether the input may retract rows."""
        return SIGN in self.schema.names

    @property
    def window(self) -> WindowOption:
        """The window option."""
        return cast("WindowOption", self.options.window)

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns of the output; in a merge with the first input's names."""
        return self.takes[0].keys

    @property
    def has_several_inputs(self) -> bool:
        """Whether it has several named inputs."""
        return self.takes[0].name is not None

    @property
    def takes_panes(self) -> bool:
        """Whether its input is another stage, so that it must see every step."""
        return any(relation.is_panes for relation in self.takes)

    @property
    def carries_times(self) -> bool:
        """Whether slices carry the earliest and latest event time of their rows."""
        return (
            self.observed
            or self.options.trigger.needs_row_times
            or any(part.reads_times for part in (self.progress, *self.parts))
        )

    @cached_property
    def preaggregates(self) -> bool:
        """Whether rows are pre-aggregated by (key, window) before the shuffle.

        See docs/rules/output.md#pre-aggregation.
        """
        return not self.why_not_preaggregated

    @property
    def adds_up(self) -> bool:
        """Whether its updates are accumulators that a suppress adds up."""
        return self.suppressed and self.options.discards

    @property
    def why_not_preaggregated(self) -> str:
        """Why rows are not pre-aggregated; empty if they are."""
        if self.options.with_dropped:
            return "with_dropped() needs the rows"
        if self.options.drops_errors:
            return "on_error('drop') needs the rows"
        if self.progress.why_not_preaggregated:
            return self.progress.why_not_preaggregated
        if self.window.merging:
            return "windows merge in the shard"
        if self.takes_panes:
            return "rows are the panes of another stage"
        if self.signed:
            return "rows may be retracted"
        if self.options.deduplication is not None:
            return "duplicates are found in the shard"
        if not self.window.preaggregates:
            return "the window option does not define slices"
        for bound in self.accumulations:
            if bound.accumulation.python or not bound.accumulation.preaggregates:
                return f"{bound.name}={bound.accumulation!r} needs the rows"
        return ""

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The key columns."""
        return pa.schema([self.schema.field(name) for name in self.keys])

    @cached_property
    def in_state(self) -> tuple[BoundAccumulation, ...]:
        """All accumulations with accumulators in windows."""
        return (*self.accumulations, *(bound for part in self.parts for bound in part.accumulators))

    @cached_property
    def state_schema(self) -> pa.Schema:
        """The accumulators' columns."""
        fields = [(f"{bound.name}.{i}", field.type) for bound in self.in_state for i, field in enumerate(bound.fields)]
        return pa.schema(fields)

    @cached_property
    def value_schema(self) -> pa.Schema:
        """The panes' values, as stored."""
        return pa.schema([(bound.name, bound.accumulation.value_type(bound.types)) for bound in self.accumulations])

    @property
    def exploding(self) -> Accumulation | None:
        """The accumulation whose panes are exploded, a join into one row per pair; it is then the only one."""
        only = self.accumulations[0].bound if self.accumulations else None
        return only if only is not None and only.explodes else None

    @property
    def declared_join(self) -> Join | None:
        """The join, as declared; None: there is no join."""
        declared = list(self.options.accumulations.values())
        return declared[0] if declared and isinstance(declared[0], Join) else None

    @property
    def null_keys(self) -> NullKeys | None:
        """The meaning of null keys; None: not a join, or without keys."""
        return None if self.declared_join is None or not self.keys else self.declared_join.null_keys

    @property
    def retracts_null_keys(self) -> bool:
        """Whether emitted rows may be retracted that were joined, or came alone, by the meaning of null keys."""
        return self.options.retracts and self.declared_join is not None and all(self.declared_join.gives_alone)

    @cached_property
    def row_type(self) -> pa.DataType:
        """The type of a dropped row; in a merge a struct with one struct per input, of which only the row's own is not null."""
        if self.has_several_inputs:
            inputs = merged_inputs(self.takes, self.schema).values()
            return pa.struct([(input_.name, pa.struct(list(input_.columns.items()))) for input_ in inputs])
        own = self.takes[0].own_columns.names
        return pa.struct([field for field in self.schema if field.name in own])

    @cached_property
    def pane_schema(self) -> pa.Schema:
        """The output."""
        dropped = dropped_type(self.row_type, message=self.options.drops_errors)
        return pa.schema(
            [
                *self.key_schema,
                ("window", self.options.window_type),
                *((bound.name, bound.bound.output_type(bound.types)) for bound in self.accumulations),
                ("pane", PANE),
                ("timestamp", TIMESTAMP),
                *([("dropped", dropped)] if self.options.lists_dropped else []),
            ]
        )

    @cached_property
    def new_state(self) -> pa.Table:
        """Empty accumulators: one entry."""
        columns: list[pa.Array] = []
        for bound in self.in_state:
            none = [pa.array([], field.type) for field in bound.fields]
            columns.extend(bound.accumulation.combine(Groups(np.empty(0, dtype=np.int64), 1), none))
        return pa.table(columns, schema=self.state_schema)

    @property
    def unless_extended(self) -> str:
        """Words to follow the end of a window: that of a merging window is not fixed."""
        return ", unless rows extend it" if self.window.merging else ""

    def expiry_us(self, end_us: Any) -> Any:
        """The watermark at which windows with these ends expire."""
        lateness = self.options.lateness
        return np.where(end_us > _END_US - lateness, _END_US, np.minimum(end_us, _END_US - lateness) + lateness)

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The parts that a checkpoint holds."""
        return spec_of(
            self.options,
            self.takes,
            null_keys=self.null_keys,
            shards=self.shards,
            keys=columns_of(self.key_schema),
            ids=columns_of(self.schema.field(name) for name in self.options.id_columns),
            reads={bound.name: bound.reads for bound in self.accumulations},
            keeps_rows=len(self.in_state) > len(self.accumulations),
        )

    @cached_property
    def gives(self) -> Relation:
        """Its panes, as input of a later stage."""
        return attrs.evolve(gives(self.options, self.takes), schema=self.pane_schema)
