"""The plan of a changes stage: its options bound to its input's columns and types."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.change_columns import check_change_columns
from beamish.contract.columns import find_column
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.schemas import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.durations import Duration
from beamish.errors import ColumnError
from beamish.kinds.changes.options import ChangesOptions
from beamish.kinds.suppress.option import Suppress, UntilWindowCloses


@attrs.define(slots=False, eq=False)
class ChangesPlan:
    """The bound options of a changes stage.

    Attributes:
        options: its options.
        takes: the input, with its schema.
        schema: the input columns, all of which are shuffled.
        value_schema: the value columns of the output.
        grace: how long after its end a window accepts changes; None: unlimited.
        preaggregates: whether a task sends only the newest row of a slot.
        shards: number of shards.
        gives: the output.
    """

    options: ChangesOptions
    takes: Relation
    schema: pa.Schema
    value_schema: pa.Schema
    grace: Duration | None
    preaggregates: bool
    shards: int
    gives: Relation

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The key columns."""
        return pa.schema([self.schema.field(name) for name in self.takes.keys])

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the plan that may not change under a checkpoint."""
        options = self.options
        return {
            "shards": self.shards,
            "keys": [f"{field.name}: {field.type}" for field in self.key_schema],
            "values": [f"{field.name}: {field.type}" for field in self.value_schema],
            "deleted": options.deleted,
            "sequence_by": options.sequence_by,
            "window": options.window,
        }


def make_plan(
    options: ChangesOptions, takes: Relation, gives: Relation, suppress: Suppress, shards: int
) -> ChangesPlan:
    """Bind a changes stage to its input.

    Raises:
        ColumnError: a column is missing, of the wrong type, or has a name that the output uses.
    """
    schema = takes.columns
    where = f"changes({options.arguments})"
    check_change_columns(where, schema, takes.keys, options.deleted, options.sequence_by)
    if options.window is not None and not _is_window(find_column(schema, where, options.window).type):
        raise ColumnError(
            f"{where}: {options.window!r} is {schema.field(options.window).type}; it must be a struct of two timestamps, start "
            "and end, as Spark's window() gives"
        )
    hidden = {*takes.keys, options.deleted, options.window}
    if takes.event_time == "timestamp":
        hidden.add("timestamp")  # it becomes the pane's timestamp
    values = pa.schema([field for field in schema if field.name not in hidden])
    for name in (*takes.keys, *values.names):
        if str(name).lower() in PANE_COLUMNS:
            raise ColumnError(f"{where}: the output has a column {name!r} of its own; rename yours")
    columns = [*(schema.field(name) for name in takes.keys), ("window", WINDOW), *values, ("pane", PANE)]
    columns += [("timestamp", TIMESTAMP)]
    columns += [("dropped", dropped_type(pa.struct(list(schema))))] if options.with_dropped else []
    until = suppress.until
    grace = until.grace if isinstance(until, UntilWindowCloses) else None
    preaggregates = suppress.holds and not options.with_dropped
    bound = attrs.evolve(gives, schema=pa.schema(columns))
    return ChangesPlan(options, takes, schema, values, grace, preaggregates, shards, bound)


def _is_window(type_: pa.DataType) -> bool:
    if pa.types.is_null(type_):
        return True
    if not pa.types.is_struct(type_):
        return False
    fields = {field.name: field.type for field in type_}
    return set(fields) == {"start", "end"} and all(pa.types.is_timestamp(type_) for type_ in fields.values())
