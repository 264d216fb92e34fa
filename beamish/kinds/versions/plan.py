"""The plan of a versioned table: bound to the columns and types of its changes, their order, and how they are packed by shard.

Packing of changes: one payload of Arrow bytes per shard. Where the rows themselves are not needed, a task sends only the effective change
of each key and time.

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

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.clocks import in_range
from beamish.contract.inputs import check_change_columns, check_where, find_column, signs_of, where_identity
from beamish.contract.keys import any_null, times_of, to_shards
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.durations import Duration
from beamish.errors import ColumnError
from beamish.kernels.buffers import Flags, Ints, cast, plain
from beamish.kernels.codes import factorize_rows, normalise
from beamish.kernels.groups import Groups
from beamish.kernels.order import run_starts, sort_keys, sort_order, value_keys
from beamish.kinds.versions.options import VALID_FROM, VALID_TO, VersionsOptions


@attrs.define(slots=False, eq=False)
class TablePlan:
    """The bound options of a versioned table.

    Attributes:
        options: its options.
        takes: its changes, with their schema.
        value_schema: the columns of a version.
        with_dropped: whether dropped changes are emitted.
        tolerance_us: of a join: maximum age of a version, microseconds; None: unlimited.
        corrected_us: of a join that looks ahead: how far past a row the watermark is when it is last corrected, microseconds.
    """

    options: VersionsOptions
    takes: Relation
    value_schema: pa.Schema
    with_dropped: bool
    tolerance_us: int | None = None
    corrected_us: int = 0

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The key columns."""
        return pa.schema([self.takes.columns.field(name) for name in self.takes.keys])

    @property
    def signed(self) -> bool:
        """Whether changes may be retracted."""
        return self.takes.retracts

    @property
    def preaggregates(self) -> bool:
        """Whether a task sends only the effective change of each key and time."""
        return not self.signed and not self.with_dropped

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a change that are shuffled."""
        if self.with_dropped:
            return tuple(self.takes.columns.names)
        named = (*self.takes.keys, *self.value_schema.names, self.options.deleted, self.options.sequence_by)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def sequence(self) -> pa.Field | None:
        """The column that orders changes of the same key and time."""
        by = self.options.sequence_by
        return None if by is None else self.takes.columns.field(by)

    @property
    def row_type(self) -> pa.DataType:
        """The type of a dropped change."""
        return pa.struct(list(self.takes.own_columns))

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the plan that may not change under a checkpoint."""
        options = self.options
        return {
            "keys": [f"{field.name}: {field.type}" for field in self.key_schema],
            "values": [f"{field.name}: {field.type}" for field in self.value_schema],
            "deleted": options.deleted,
            "sequence_by": options.sequence_by,
            "only_updated": options.only_updated,
            "retracts": self.signed,
            "condition of changes": where_identity(self.takes),
        }

    @property
    def spans(self) -> dict[str, Any]:
        """Durations that may shrink between two runs, microseconds."""
        return {"history": self.options.history.us, "allowed_lateness": self.options.allowed_lateness.us}

    @property
    def kept_us(self) -> int:
        """How long versions are stored after their end: while they may be read, or matched by a row that is corrected; microseconds."""
        return max(self.options.history.us, self.corrected_us)

    def describe_shuffled(self) -> str:
        """The shuffled columns, for explain."""
        words = f"of a change {', '.join(self.columns)}"
        if self.preaggregates:
            return f"{words}; per task only the effective one of each key and time"
        why = "its input retracts" if self.signed else "with_dropped() needs the rows"
        return f"{words}; each, since {why}"

    def describe_stored(self) -> str:
        """The stored state, for explain."""
        latest = "each key's latest version" + (
            " (deletes bound them)" if self.tolerance_us is None else " within the tolerance"
        )
        return f"{latest}, and versions that ended less than {Duration(self.kept_us)} before the watermark"


@attrs.define(slots=False, eq=False)
class VersionsPlan:
    """The bound options of a versions stage.

    Attributes:
        table: of its table.
        shards: number of shards.
        is_final: whether the input is complete, as in a batch.
        gives: the output.
    """

    table: TablePlan
    shards: int
    is_final: bool
    gives: Relation

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the plan that may not change under a checkpoint."""
        return {"shards": self.shards, **self.table.identity, "latest_only": self.table.options.latest_only}


def make_versions_plan(
    options: VersionsOptions, takes: Relation, gives: Relation, shards: int, *, is_final: bool
) -> VersionsPlan:
    """Bind a versions stage to its changes (ColumnError: a column is missing, of the wrong type, or has a name that the output uses)."""
    table = make_table_plan(options, takes, with_dropped=options.with_dropped)
    columns = [*table.key_schema, *table.value_schema, (VALID_FROM, TIMESTAMP), (VALID_TO, TIMESTAMP)]
    columns += [("window", WINDOW), ("pane", PANE), ("timestamp", TIMESTAMP)]
    columns += [("dropped", dropped_type(table.row_type))] if options.with_dropped else []
    check_names(
        f"versions({options.arguments})",
        [*table.key_schema.names, *table.value_schema.names],
        {*PANE_COLUMNS, VALID_FROM, VALID_TO},
    )
    return VersionsPlan(table, shards, is_final, attrs.evolve(gives, schema=pa.schema(columns)))


def make_table_plan(
    options: VersionsOptions,
    takes: Relation,
    *,
    with_dropped: bool,
    tolerance_us: int | None = None,
    corrected_us: int = 0,
) -> TablePlan:
    """Bind a table to its changes (ColumnError: a column is missing, or of the wrong type)."""
    check_where(takes, takes.where)
    schema, where = takes.columns, f"versions({options.arguments})"
    check_change_columns(where, schema, takes.keys, options.deleted, options.sequence_by)
    if options.values is None:
        other = {*takes.keys, takes.event_time, options.deleted, options.sequence_by}
        values = [field for field in takes.own_columns if field.name not in other]
    else:
        values = [find_column(schema, where, name) for name in options.values]
    return TablePlan(options, takes, pa.schema(values), with_dropped, tolerance_us, corrected_us)


def check_names(where: str, names: Sequence[str], added: Iterable[str]) -> None:
    """Check that columns, ignoring case, do not have the names of added ones (ColumnError: a column has such a name)."""
    for name in names:
        if name.lower() in added:
            raise ColumnError(f"{where}: the output has a column {name!r} of its own; rename yours")


def order_of_changes(changes: pa.Table, code: Ints, time_us: Ints, step: Ints, value: Ints | None = None) -> Ints:
    """Sort changes by key, then time; the last of a key and time is the effective one.

    Args:
        changes: with ``deletes``, the value columns, and ``sequence`` if there is one.
        code: int64, one per change: the number of its key.
        time_us: int64, microseconds.
        step: int64, the number of the step in which it arrived.
        value: int64, ranks of the values, if known already.

    Returns:
        int64, their indices in order.
    """
    sequence = sort_keys(plain(changes["sequence"])) if "sequence" in changes.schema.names else []
    sets = (~changes["deletes"].to_numpy(zero_copy_only=False)).astype(np.int64)
    names = [name for name in changes.schema.names if name.startswith("value.")]
    values = value_keys([changes[name] for name in names]) if value is None else [value]
    return sort_order([code, time_us, *sequence, step, sets, *values])


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
    yield from to_shards(changes, key_columns(changes), plan.takes, number, shards)


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
        fields = list(plan.takes.own_columns)
        own = [cast(rows[field.name].combine_chunks(), field.type) for field in fields]
        columns["row"] = pa.StructArray.from_arrays(own, fields=fields)
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
    return any_null(key_columns(rows), rows.num_rows)
