"""The plans of a versions stage, and of the table that it or an as-of join stores: bound to its input's columns and types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.change_columns import check_change_columns
from beamish.contract.columns import find_column
from beamish.contract.conditions import check_where, where_identity
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.schemas import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.errors import ColumnError
from beamish.kinds.versions.options import VALID_FROM, VALID_TO, VersionsOptions


@attrs.define(slots=False, eq=False)
class TablePlan:
    """The bound options of a versioned table.

    Attributes:
        options: its options.
        takes: its changes, with their schema.
        value_schema: the columns of a version.
        with_dropped: whether dropped changes are emitted.
        tolerance: of a join: maximum age of a version, microseconds; None: unlimited.
    """

    options: VersionsOptions
    takes: Relation
    value_schema: pa.Schema
    with_dropped: bool
    tolerance_us: int | None = None

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
        return pa.struct(list(self.takes.columns))

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
    def carried(self) -> str:
        """The shuffled columns, for explain."""
        words = f"of a change {', '.join(self.columns)}"
        if self.preaggregates:
            return f"{words}; per task only the effective one of each key and time"
        why = "its input retracts" if self.signed else "with_dropped() needs the rows"
        return f"{words}; each, since {why}"

    @property
    def kept(self) -> str:
        """The stored state, for explain."""
        latest = "each key's latest version" + (
            " (deletes bound them)" if self.tolerance_us is None else " within the tolerance"
        )
        return f"{latest}, and versions that ended less than {self.options.history} before the watermark"


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
    """Bind a versions stage to its changes.

    Raises:
        ColumnError: a column is missing, of the wrong type, or has a name that the output uses.
    """
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
) -> TablePlan:
    """Bind a table to its changes.

    Raises:
        ColumnError: a column is missing, or of the wrong type.
    """
    check_where(takes, takes.where)
    schema, where = takes.columns, f"versions({options.arguments})"
    check_change_columns(where, schema, takes.keys, options.deleted, options.sequence_by)
    if options.values is None:
        other = {*takes.keys, takes.event_time, options.deleted, options.sequence_by}
        values = [field for field in schema if field.name not in other]
    else:
        values = [find_column(schema, where, name) for name in options.values]
    return TablePlan(options, takes, pa.schema(values), with_dropped, tolerance_us)


def check_names(where: str, names: Sequence[str], added: Iterable[str]) -> None:
    """Check that columns, ignoring case, do not have the names of added ones.

    Raises:
        ColumnError: a column has such a name.
    """
    for name in names:
        if name.lower() in added:
            raise ColumnError(f"{where}: the output has a column {name!r} of its own; rename yours")
