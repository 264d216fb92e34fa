"""The plan of an upserts stage: its options bound to the columns and types of its input."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.inputs import check_change_columns
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.errors import ColumnError
from beamish.instants import EARLIEST_US, END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kinds.upserts.options import UpsertsOptions
from beamish.triggers.trigger import NEVER_US


@attrs.define(slots=False, eq=False)
class UpsertsPlan:
    """The bound options of an upserts stage.

    Attributes:
        options: its options.
        takes: the input, with its schema.
        schema: the input columns, all of which are shuffled.
        value_schema: the value columns of the output.
        shards: number of shards.
        gives: the output.
        is_final: whether the input is complete.
    """

    options: UpsertsOptions
    takes: Relation
    schema: pa.Schema
    value_schema: pa.Schema
    shards: int
    gives: Relation
    is_final: bool

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The key columns."""
        return pa.schema([self.schema.field(name) for name in self.takes.keys])

    @cached_property
    def sequence(self) -> pa.Field | None:
        """The column that orders the rows of a key; None: the event time."""
        by = self.options.sequence_by
        return None if by is None else self.schema.field(by)

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the plan that may not change under a checkpoint."""
        options = self.options
        return {
            "shards": self.shards,
            "explode": options.explode,
            "deleted": options.deleted,
            "sequence_by": options.sequence_by,
            "keep_deleted": "for ever" if options.keep_deleted is None else str(options.keep_deleted),
            "forget_after": "for ever" if options.forget_after is None else str(options.forget_after),
            "keys": [f"{field.name}: {field.type}" for field in self.key_schema],
            "values": [f"{field.name}: {field.type}" for field in self.value_schema],
        }

    def due_us(self, time_us: Ints, deletes: Flags) -> Ints:
        """The watermark at which an image expires, by its time and whether it deletes: int64; NEVER_US: never."""
        options, never = self.options, np.full(len(time_us), NEVER_US)
        spans = [options.forget_after, options.keep_deleted]
        row, deleted = (never if span is None else _plus(time_us, span.us) for span in spans)
        due: Ints = np.where(deletes, np.minimum(deleted, row), row)
        # Before there is a watermark, a delete without event time is at the beginning of time, and would expire at once.
        due[deletes & (time_us == EARLIEST_US)] = NEVER_US
        return due

    def deletes(self, rows: pa.Table) -> Flags:
        """Whether rows delete: bool, one per row; null is false."""
        if self.options.deleted is None:
            return np.zeros(rows.num_rows, dtype=bool)
        deleted = rows[self.options.deleted].combine_chunks().cast(pa.bool_())
        return pc.is_in(deleted, pa.array([True])).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _plus(time_us: Ints, span_us: int) -> Ints:
    """Times after a span, at most the end of time, which the watermark reaches last."""
    after: Ints = np.minimum(time_us, END_OF_TIME_US - span_us) + span_us
    return after


def make_upserts_plan(
    options: UpsertsOptions, takes: Relation, gives: Relation, shards: int, *, is_final: bool
) -> UpsertsPlan:
    """Bind such a stage to its input (ColumnError: a column is missing, of the wrong type, or has a name that the output uses)."""
    schema, own = takes.columns, takes.own_columns
    check_change_columns(options.call, schema, takes.keys, options.deleted, options.sequence_by)
    hidden = {*takes.keys, *options.columns}
    if takes.event_time == "timestamp":
        hidden.add("timestamp")  # it becomes the pane's timestamp
    values = pa.schema([field for field in own if field.name not in hidden])
    for name in (*takes.keys, *values.names):
        if str(name).lower() in PANE_COLUMNS:
            raise ColumnError(f"{options.call}: the output has a column {name!r} of its own; rename yours")
    columns = [*(schema.field(name) for name in takes.keys), *values, ("window", WINDOW), ("pane", PANE)]
    columns += [("timestamp", TIMESTAMP)]
    columns += [("dropped", dropped_type(pa.struct(list(own))))] if options.with_dropped else []
    bound = attrs.evolve(gives, schema=pa.schema(columns))
    return UpsertsPlan(options, takes, schema, values, shards, bound, is_final)
