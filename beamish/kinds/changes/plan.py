"""The plan of a changes stage: its options bound to columns and types; the slot of a change, and which change of a slot is the newest."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.inputs import check_change_columns, find_column
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, Block, dropped_type
from beamish.durations import Duration
from beamish.errors import ColumnError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints, plain
from beamish.kernels.order import Key, is_orderable, sort_keys
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
    """Bind a changes stage to its input (ColumnError: a column is missing, of the wrong type, or has a name that the output uses)."""
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
    own = takes.own_columns
    by = options.sequence_by
    values = pa.schema([field for field in schema if field.name not in hidden and field.name in (*own.names, by)])
    for name in (*takes.keys, *values.names):
        if str(name).lower() in PANE_COLUMNS:
            raise ColumnError(f"{where}: the output has a column {name!r} of its own; rename yours")
    columns = [*(schema.field(name) for name in takes.keys), ("window", WINDOW), *values, ("pane", PANE)]
    columns += [("timestamp", TIMESTAMP)]
    columns += [("dropped", dropped_type(pa.struct(list(own))))] if options.with_dropped else []
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


def newest_keys(plan: ChangesPlan, time_us: Ints, deletes: Flags, values: pa.Table) -> tuple[list[Key], list[Key]]:
    """Keys to sort changes by, before and after their sequence (see ``contract/operator.py``)."""
    by = plan.options.sequence_by
    before = [time_us] if by is None else sort_keys(plain(values[by].combine_chunks()))
    after = [(~deletes).astype(np.int64)]
    for name in [field.name for field in plan.value_schema if is_orderable(field.type)]:
        after += sort_keys(plain(values[name].combine_chunks()))
    return before, after


def windows_of(plan: ChangesPlan, rows: pa.Table) -> Block:
    """The windows of rows: ``start_us``, ``end_us`` (int64, microseconds) and ``windowless`` (bool); bounds may be null."""
    count = rows.num_rows
    if plan.options.window is None or pa.types.is_null(rows.schema.field(plan.options.window).type):
        none = np.zeros(count, dtype=np.int64)
        return {"start_us": none, "end_us": none, "windowless": np.ones(count, dtype=bool)}
    window = rows[plan.options.window].combine_chunks()
    windowless = window.is_null().to_numpy(zero_copy_only=False)
    start, end = (_us(window.field(name), unknown) for name, unknown in (("start", 0), ("end", END_OF_TIME_US)))
    bounds = {"start_us": np.where(windowless, 0, start), "end_us": np.where(windowless, 0, end)}
    return {**bounds, "windowless": windowless}


def _us(times: pa.Array, unknown: int) -> Ints:
    return pc.fill_null(times.cast(pa.timestamp("us")).cast(pa.int64()), unknown).to_numpy()  # type: ignore[no-any-return]


def deletes(plan: ChangesPlan, rows: pa.Table) -> Flags:
    """Whether rows delete: bool, one per row; null is false."""
    if plan.options.deleted is None:
        return np.zeros(rows.num_rows, dtype=bool)
    deleted = rows[plan.options.deleted].combine_chunks().cast(pa.bool_())
    return pc.is_in(deleted, pa.array([True])).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
