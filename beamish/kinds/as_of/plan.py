"""The plan of an as-of join: its options bound to the columns and types of rows and changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.inputs import check_where, find_column, where_identity
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.errors import ColumnError
from beamish.kinds.versions.options import VALID_FROM, AsOfOptions, VersionsOptions
from beamish.kinds.versions.plan import TablePlan, check_names, make_table_plan
from beamish.modes import WaitFor
from beamish.watermarks import Watermark

LEFT, TABLE = 0, 1
"""The numbers of the inputs."""


@attrs.define(slots=False, eq=False)
class AsOfPlan:
    """The bound options of an as-of join.

    Attributes:
        options: the options of the join.
        table: the plan of its table.
        takes: rows, and the changes of the table.
        shards: number of shards.
        is_final: whether the input is complete, as in a batch.
        gives: the output.
    """

    options: AsOfOptions
    table: TablePlan
    takes: tuple[Relation, ...]
    shards: int
    is_final: bool
    gives: Relation

    @property
    def left(self) -> Relation:
        """The left input."""
        return self.takes[LEFT]

    @cached_property
    def left_schema(self) -> pa.Schema:
        """Its columns, all of which are shuffled; join columns in the table's key types."""
        keys = dict(zip(self.left.keys, self.table.key_schema.types, strict=True))
        return pa.schema([pa.field(field.name, keys.get(field.name, field.type)) for field in self.left.own_columns])

    @property
    def left_names(self) -> list[str]:
        """The emitted ones; an event time named ``timestamp`` becomes the pane's."""
        hidden = "timestamp" if self.left.event_time == "timestamp" else None
        return [name for name in self.left_schema.names if name != hidden]

    @cached_property
    def match_type(self) -> pa.DataType:
        """The type of a match."""
        return pa.struct([*self.table.value_schema, (VALID_FROM, TIMESTAMP)])

    @property
    def has_windows(self) -> bool:
        """Whether rows are panes with windows, which they keep."""
        return self.left.window is not None

    @property
    def counted(self) -> Sequence[int]:
        """The inputs whose watermarks count."""
        return (LEFT,) if self.options.wait_for is WaitFor.LEFT_INPUT else (LEFT, TABLE)

    @property
    def policies(self) -> list[Watermark]:
        """Their watermark policies."""
        return [self.takes[number].policy for number in self.counted]

    @property
    def corrected_for_us(self) -> int:
        """How far past a row the watermark may be for a change to concern it, microseconds."""
        return corrected_for_us(self.options, self.table.options)

    def describe_stored(self) -> str:
        """The stored state, for explain."""
        waits = "" if self.options.early or self.options.at_arrival else "rows until they are due, and "
        corrected = self.table.options.allowed_lateness + self.options.ahead
        rows = f"; emitted rows until the watermark is {corrected} past them" if self.options.retracts else ""
        return f"{waits}of the table {self.table.describe_stored()}{rows}"

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the plan that may not change under a checkpoint."""
        options, left = self.options, self.left
        tolerance = options.tolerance
        return {
            "shards": self.shards,
            **self.table.identity,
            "rows": [f"{field.name}: {field.type}" for field in self.left_schema],
            "on": list(left.keys),
            "how": options.how,
            "tolerance": None if tolerance is None else tolerance.us,
            "early": options.early,
            "wait_for": options.wait_for.value,
            "allow_exact_matches": options.allow_exact_matches,
            # None as in checkpoints of earlier versions, which have neither
            "direction": None if options.direction == "backward" else options.direction,
            "as_of": options.as_of if options.at_arrival else None,
            "mode": options.mode.value,
            "rows retract": left.retracts,
            "condition of rows": where_identity(left),
        }


def corrected_for_us(options: AsOfOptions, table: VersionsOptions) -> int:
    """How far past a row the watermark may be for a change to concern it, microseconds."""
    return table.allowed_lateness.us + options.ahead.us


def make_as_of_plan(
    options: AsOfOptions,
    table_options: VersionsOptions,
    takes: Sequence[Relation],
    gives: Relation,
    *,
    shards: int,
    is_final: bool,
) -> AsOfPlan:
    """Bind an as-of join to rows and changes (ColumnError: a column is missing, of the wrong type, or has a name that the output uses)."""
    left, changes = takes
    check_where(left, left.where)
    changes = attrs.evolve(changes, schema=_key_types(left, changes))
    tolerance = None if options.tolerance is None else options.tolerance.us
    corrected_us = corrected_for_us(options, table_options) if options.retracts and options.ahead else 0
    table = make_table_plan(
        table_options, changes, with_dropped=options.with_dropped, tolerance_us=tolerance, corrected_us=corrected_us
    )
    plan = AsOfPlan(options, table, (left, changes), shards, is_final, gives)
    name = str(changes.name)
    check_names(f"as_of_join({left.name}=...)", plan.left_names, {*PANE_COLUMNS, name.lower()})
    check_names(f"as_of_join({name}=...)", table.value_schema.names, {VALID_FROM})
    columns = [*(plan.left_schema.field(column) for column in plan.left_names), (name, plan.match_type)]
    columns += [("window", WINDOW), ("pane", PANE), ("timestamp", TIMESTAMP)]
    if options.with_dropped:
        rows = pa.struct([(str(left.name), pa.struct(list(plan.left_schema))), (name, table.row_type)])
        columns.append(("dropped", dropped_type(rows)))
    return attrs.evolve(plan, gives=attrs.evolve(gives, schema=pa.schema(columns)))


def _key_types(left: Relation, changes: Relation) -> pa.Schema:
    """The columns of the changes; a key of null type gets the type of the rows' column.

    Raises:
        ColumnError: a column is missing, or the types differ.
    """
    assert changes.schema is not None  # noqa: S101 - it is bound
    schema = changes.schema
    for name, key in zip(left.keys, changes.keys, strict=True):
        mine = find_column(left.columns, f"as_of_join(on={name!r}): {left.name}", name).type
        field = find_column(changes.columns, f"{changes.name}: key_by({key!r})", key)
        if pa.types.is_null(field.type):
            schema = schema.set(schema.get_field_index(key), pa.field(key, mine))
        elif not pa.types.is_null(mine) and mine != field.type:
            raise ColumnError(
                f"as_of_join(on={{{name!r}: {key!r}}}): {left.name}'s {name!r} is {mine}, {changes.name}'s {key!r} is {field.type}; "
                "they must have the same type: cast one of them"
            )
    return schema
