"""Packing of changes: one payload of Arrow bytes per shard.

Where the rows themselves are not needed, a task sends only the effective change of each key and time.

columns:
    key.<name>      the key, normalised
    value.<name>    a value column of its version
    sequence        orders changes of the same key and time (if declared)
    time_us         int64; null if missing
    deletes         bool
    sign            int8: -1 retracts a change (only for retracting input)
    rows            int64: the number of rows it represents
    row             the original row, a struct (only if dropped changes are emitted)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.event_times import in_range
from beamish.contract.sharding import times_of, to_shards
from beamish.contract.signs import signs_of
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.buffers import cast
from beamish.kernels.codes import factorize_rows, normalise
from beamish.kernels.groups import Groups
from beamish.kernels.order import run_starts
from beamish.kinds.versions.order import order_of_changes
from beamish.kinds.versions.plan import TablePlan


def pack_changes(plan: TablePlan, rows: pa.Table, number: int, shards: int) -> Iterator[tuple[int, bytes]]:
    """Pack changes, one payload per shard.

    Args:
        plan: the table's.
        rows: a source's, the plan's columns and ``EVENT_TIME``; or panes.
        number: the number of the input.
        shards: number of shards.
    """
    changes = _changes(plan, rows.combine_chunks())
    if plan.preaggregates:
        changes = _counting(changes)
    yield from to_shards(changes, key_columns(changes), number, shards)


def key_column(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    """A join column of rows, in the table's type."""
    return cast(normalise(column.combine_chunks()), type_)


def key_columns(changes: pa.Table) -> list[pa.Array]:
    """The key columns of changes, and of everything derived from them."""
    return [changes[name].combine_chunks() for name in changes.schema.names if name.startswith("key.")]


def _changes(plan: TablePlan, rows: pa.Table) -> pa.Table:
    columns = {f"key.{field.name}": key_column(rows[field.name], field.type) for field in plan.key_schema}
    columns |= {f"value.{name}": rows[name].combine_chunks() for name in plan.value_schema.names}
    if plan.sequence is not None:
        columns["sequence"] = rows[plan.sequence.name].combine_chunks()
    columns["time_us"] = times_of(plan.takes, rows)
    columns["deletes"] = _deletes(plan, rows)
    if plan.signed:
        columns["sign"] = signs_of(plan.takes, rows)
    columns["rows"] = pa.array(np.ones(rows.num_rows, np.int64))
    if plan.with_dropped:
        own = [cast(rows[field.name].combine_chunks(), field.type) for field in plan.takes.columns]
        columns["row"] = pa.StructArray.from_arrays(own, fields=list(plan.takes.columns))
    return pa.table(columns)


def _deletes(plan: TablePlan, rows: pa.Table) -> pa.Array:
    if plan.options.deleted is None:
        return pa.array(np.zeros(rows.num_rows, dtype=bool))
    deleted = rows[plan.options.deleted].combine_chunks().cast(pa.bool_())
    return pc.fill_null(deleted, False)  # noqa: FBT003


def _counting(changes: pa.Table) -> pa.Table:
    """The effective change of each key and time; changes that will be dropped stay as they are."""
    timed = timed_and_keyed(changes)
    if not timed.any():
        return changes
    rest, own = changes.filter(pa.array(~timed)), changes.filter(pa.array(timed)).combine_chunks()
    code = factorize_rows(key_columns(own), own.num_rows).of
    time_us = own["time_us"].to_numpy()
    order = order_of_changes(own, code, time_us, np.zeros(len(code), np.int64))
    begins = run_starts([code[order], time_us[order]])
    last = np.append(begins[1:], True)
    kept = own.take(pa.array(order[last]))
    sizes = Groups(np.cumsum(begins) - 1, int(begins.sum())).sum(own["rows"].to_numpy()[order])
    kept = kept.set_column(kept.schema.get_field_index("rows"), "rows", pa.array(sizes))
    return pa.concat_tables([kept, rest])


def timed_and_keyed(changes: pa.Table) -> Flags:
    """Which changes have a supported event time, and a key without null: bool, one per change."""
    flags: Flags = in_range(time_us_of(changes)) & changes["time_us"].is_valid().to_numpy()
    flags &= ~null_key(changes)
    return flags


def time_us_of(changes: pa.Table) -> Ints:
    """The times of changes, int64 microseconds; 0 if missing."""
    return pc.fill_null(changes["time_us"], 0).to_numpy()  # type: ignore[no-any-return]


def null_key(rows: pa.Table) -> Flags:
    """Whether a key column is null: bool, one per row."""
    flags = np.zeros(rows.num_rows, dtype=bool)
    for column in key_columns(rows):
        flags |= column.is_null().to_numpy(zero_copy_only=False)
    return flags
