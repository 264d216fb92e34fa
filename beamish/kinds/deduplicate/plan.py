"""The plan of a deduplication stage: bound to its input's columns and types."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.inputs import check_keys, find_column, is_groupable
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.errors import ColumnError
from beamish.kinds.deduplicate.option import Deduplication


@attrs.define(slots=False, eq=False)
class DuplicatesPlan:
    """The bound options of a deduplication stage.

    Attributes:
        options: its options.
        takes: the input, with its schema.
        schema: the input columns, all of which are shuffled.
        with_dropped: whether dropped rows are emitted.
        shards: number of shards.
        gives: the output.
    """

    options: Deduplication
    takes: Relation
    schema: pa.Schema
    with_dropped: bool
    shards: int
    gives: Relation

    @cached_property
    def value_schema(self) -> pa.Schema:
        """The columns of the emitted rows."""
        return pa.schema([field for field in self.takes.own_columns if field.name.lower() not in PANE_COLUMNS])

    @cached_property
    def id_schema(self) -> pa.Schema:
        """The id columns, including the key."""
        names = dict.fromkeys((*self.takes.keys, *self.options.columns))
        return pa.schema([self.schema.field(name) for name in names])

    @property
    def key_of_ids(self) -> list[int]:
        """The partitioning columns as positions in an id: the key's, or all."""
        names = self.id_schema.names
        return [names.index(name) for name in names if name in self.takes.keys] or list(range(len(names)))

    @property
    def within_us(self) -> int:
        """How long ids are stored, microseconds."""
        assert self.options.within is not None  # noqa: S101 - without windows it is said
        return self.options.within.us

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the plan that may not change under a checkpoint."""
        return {
            "shards": self.shards,
            "keys": list(self.takes.keys),
            "ids": [f"{field.name}: {field.type}" for field in self.id_schema],
            "within": self.within_us,
        }


def make_duplicates_plan(
    options: Deduplication, takes: Relation, gives: Relation, shards: int, *, with_dropped: bool
) -> DuplicatesPlan:
    """Bind a deduplication stage to its input (ColumnError: a column is missing, of the wrong type, or has a name that the output uses)."""
    schema = takes.columns
    check_ids(schema, options)
    check_keys(schema, takes.keys)
    own = takes.own_columns
    for name in own.names:
        if name.lower() in PANE_COLUMNS and not (name.lower() == "timestamp" and name == takes.event_time):
            raise ColumnError(f"{options.call}: the output has a column {name!r} of its own; rename yours")
    columns = [*(field for field in own if field.name.lower() != "timestamp"), ("window", WINDOW), ("pane", PANE)]
    columns += [("timestamp", TIMESTAMP)]
    columns += [("dropped", dropped_type(pa.struct(list(own))))] if with_dropped else []
    bound = attrs.evolve(gives, schema=pa.schema(columns))
    return DuplicatesPlan(options, takes, schema, with_dropped, shards, bound)


def check_ids(schema: pa.Schema, deduplication: Deduplication) -> None:
    """Check the types of the id columns (ColumnError: a column is missing, or its values cannot be compared)."""
    for name in deduplication.columns:
        type_ = find_column(schema, deduplication.call, name).type
        if not is_groupable(type_):
            raise ColumnError(
                f"{deduplication.call}: column {name!r} is {type_}, which cannot identify rows; cast it to a string"
            )
