"""The plan of a join of tables: its options bound to the columns and types of both inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.inputs import check_where, find_column, is_groupable, where_identity
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.errors import ColumnError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Ints
from beamish.kernels.field_paths import path_of
from beamish.kinds.table_join.options import LEFT, RIGHT, TableJoinOptions
from beamish.triggers.trigger import NEVER_US
from beamish.watermarks import Watermark


@attrs.define(slots=False, eq=False)
class TableJoinPlan:
    """The bound options of a join of tables.

    Attributes:
        options: its options.
        takes: both inputs, with their schemas; keyed by the columns that are joined.
        key_schema: these columns, under the left input's names.
        shards: number of shards.
        gives: the output.
        is_final: whether the input is complete.
    """

    options: TableJoinOptions
    takes: tuple[Relation, ...]
    key_schema: pa.Schema
    shards: int
    gives: Relation
    is_final: bool

    @cached_property
    def value_schemas(self) -> Sequence[pa.Schema]:
        """The columns of each input besides those that are joined."""
        return [pa.schema([field for field in one.own_columns if field.name not in one.keys]) for one in self.takes]

    @cached_property
    def whole_schemas(self) -> Sequence[pa.Schema]:
        """The columns of a dropped row of each input: without nested fields, whose columns it has."""
        return [pa.schema([field for field in one.columns if path_of(field) is None]) for one in self.takes]

    @cached_property
    def row_types(self) -> Sequence[pa.DataType]:
        """The type of a row of each input."""
        types = [dict(zip(one.keys, self.key_schema.types, strict=True)) for one in self.takes]
        return [
            pa.struct(
                [(field.name, own.get(field.name, field.type)) for field in one.columns if path_of(field) is None]
            )
            for one, own in zip(self.takes, types, strict=True)
        ]

    @property
    def names(self) -> Sequence[str]:
        """The names of the inputs."""
        return [str(one.name) for one in self.takes]

    @property
    def policies(self) -> Sequence[Watermark]:
        """The watermark policy of each input."""
        return [one.policy for one in self.takes]

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the plan that may not change under a checkpoint."""
        options = self.options
        return {
            "shards": self.shards,
            "how": options.how,
            "on": [
                f"{field.name} = {other}: {field.type}"
                for field, other in zip(self.key_schema, self.takes[RIGHT].keys, strict=True)
            ],
            "left": [self.names[LEFT], *_shown(self.row_types[LEFT])],
            "right": [self.names[RIGHT], *_shown(self.row_types[RIGHT])],
            "forget_after": "for ever" if options.forget_after is None else str(options.forget_after),
            "conditions": [where_identity(one) for one in self.takes],
        }

    def due_us(self, latest_us: Ints) -> Ints:
        """The watermark at which join values expire, by the time of their latest row: int64; NEVER_US: never."""
        span = self.options.forget_after
        if span is None:
            return np.full(len(latest_us), NEVER_US)
        due: Ints = np.minimum(latest_us, END_OF_TIME_US - span.us) + span.us
        return due


def make_table_join_plan(
    options: TableJoinOptions, takes: Sequence[Relation], gives: Relation, *, shards: int, is_final: bool
) -> TableJoinPlan:
    """Bind a join to its inputs (ColumnError: a column is missing, of the wrong type, or has a name that the output uses)."""
    for relation in takes:
        check_where(relation, relation.where)
    left, right = takes
    key_schema = pa.schema([_key(left, right, *names) for names in zip(left.keys, right.keys, strict=True)])
    plan = TableJoinPlan(options, tuple(takes), key_schema, shards, gives, is_final)
    for name in key_schema.names:
        if name.lower() in {*PANE_COLUMNS, *map(str.lower, plan.names)}:
            raise ColumnError(
                f"table_join(on={name!r}): the output has a column {name!r} of its own; rename the column, or the input of this name"
            )
    columns = [*key_schema, *zip(plan.names, plan.row_types, strict=True)]
    columns += [("window", WINDOW), ("pane", PANE), ("timestamp", TIMESTAMP)]
    if options.with_dropped:
        own = [(name, pa.struct(list(whole))) for name, whole in zip(plan.names, plan.whole_schemas, strict=True)]
        columns.append(("dropped", dropped_type(pa.struct(own))))
    return attrs.evolve(plan, gives=attrs.evolve(gives, schema=pa.schema(columns)))


def _key(left: Relation, right: Relation, name: str, other: str) -> pa.Field:
    """A joined column (ColumnError: it is missing, cannot be joined, or the types differ)."""
    call = f"table_join(on={{{name!r}: {other!r}}})"
    types = [
        find_column(relation.columns, f"{call}: {relation.name}", column).type
        for relation, column in ((left, name), (right, other))
    ]
    known = [type_ for type_ in types if not pa.types.is_null(type_)] or [pa.null()]
    if known[LEFT] != known[-1]:
        raise ColumnError(
            f"{call}: {left.name}'s {name!r} is {types[LEFT]}, {right.name}'s {other!r} is {types[RIGHT]}; they must have the same type: cast one of them"
        )
    if not is_groupable(known[0]):
        raise ColumnError(f"{call}: a column of type {known[0]} cannot be joined; cast it to a string")
    return pa.field(name, known[0])


def _shown(type_: pa.DataType) -> list[str]:
    return [f"{field.name}: {field.type}" for field in type_]
