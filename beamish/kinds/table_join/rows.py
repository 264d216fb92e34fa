"""The stored rows of a join of tables, and what is known of each join value.

Both inputs have a table of rows, in the order of two hashes (``tables/ranges.py``): a changed row is found in one segment, and all rows of a join
value are neighbours. ``values`` has a record for each join value, so that an unmatched row is known without reading the other rows.

columns of rows (one entry per distinct row; ``_us``: int64, microseconds since the epoch):
    time_us         its time; NO_TIME_US: none
    copies          int64: how often the row is there
    group, place    int64: the hashes of its join value and of all its columns
cells: the joined columns as ``key.<name>``, its others as ``value.<name>``.

columns of values (one entry per join value):
    left, right     int64: how many rows of each input it has
    latest_us       the latest time of its rows so far
    due_us          the watermark at which it expires; NEVER_US: never
cells: the joined columns as ``key.<name>``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.stored import Layout, Store
from beamish.instants import NO_TIME_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.codes import factorize_rows, hash_rows
from beamish.kernels.order import Key, value_keys
from beamish.kinds.table_join.plan import TableJoinPlan
from beamish.tables.buckets import BucketedRecords
from beamish.tables.ranges import Ranged, RangedRecords, ranged_layout
from beamish.tables.records import DUE, Records, RecordTable, keyed_layout, keyed_schema, record_table
from beamish.triggers.trigger import NEVER_US
from beamish.watermarks import NO_WATERMARK_US

COUNTS = ("left", "right")
"""The columns of ``values`` with the number of rows of each input; the names of the tables of rows."""
VALUES = "values"


@attrs.frozen
class RowsPolicy:
    """How the rows of a shard are cut into segments; does not affect the output.

    Attributes:
        rows: number of rows, or join values, in a segment, about.
    """

    rows: int = 4_096


@attrs.frozen(eq=False)
class TableRows(Ranged):
    """Rows of an input."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        **Ranged.COLUMNS,
        "time_us": ("int64", NO_TIME_US),
        "copies": ("int64", 1),
    }

    @property
    def own(self) -> list[pa.Array]:
        """The columns besides those that are joined."""
        return self.named("value.")

    def order(self) -> list[Key]:
        """Sort keys: by time, then by their columns; equal rows have equal ones."""
        return [self["time_us"], *value_keys(self.own)]


@attrs.frozen(eq=False)
class Values(Records):
    """Join values."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        "left": ("int64", 0),
        "right": ("int64", 0),
        "latest_us": ("int64", NO_WATERMARK_US),
        "due_us": ("int64", NEVER_US),
    }


def no_rows(plan: TableJoinPlan, number: int) -> TableRows:
    """An empty table of rows of an input."""
    values = [pa.field(f"value.{field.name}", field.type) for field in plan.value_schemas[number]]
    return TableRows.none(pa.schema([*keyed_schema(plan.key_schema), *values]))


def rows_table(plan: TableJoinPlan, number: int, policy: RowsPolicy) -> RecordTable[RangedRecords[TableRows]]:
    """The table of rows of an input."""
    layout, none = ranged_layout(COUNTS[number]), no_rows(plan, number)
    keys = keyed_schema(plan.key_schema).names
    return record_table(layout, none, keys, lambda store: RangedRecords(store, layout, none, policy.rows))


def values_table(plan: TableJoinPlan, policy: RowsPolicy) -> RecordTable[ValueTable]:
    """The table of join values."""
    none, keys = Values.none(keyed_schema(plan.key_schema)), keyed_schema(plan.key_schema).names
    return record_table(keyed_layout(VALUES), none, keys, lambda store: ValueTable(none, store, policy))


def hashes(columns: list[pa.Array], rows: int) -> Ints:
    """The hash of each row of columns, as an int64; columns with maps do not count."""
    known = [column for column in columns if not _has_map(column.type)]
    return hash_rows(known, rows).view(np.int64)


def _has_map(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        return True
    return any(_has_map(type_.field(number).type) for number in range(type_.num_fields))


class ValueTable(BucketedRecords[Values]):
    """The loaded join values of a shard.

    Args:
        none: an empty table of them.
        store: the shard's.
        policy: how they are cut into segments.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, none: Values, store: Store, policy: RowsPolicy) -> None:
        super().__init__(store, _LAYOUT, none, none.cells.schema.names, policy.rows)

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which a join value expires; None: none does."""
        due = self.segments.index[DUE]
        return min(due[due != NEVER_US].tolist(), default=None)

    def rows_of(self, at: Ints, number: int) -> Ints:
        """How many rows of an input join values have, by their records; -1: no record."""
        counts: Ints = np.append(self.records[COUNTS[number]], 0)[at]
        return counts

    def take_due(self, watermark_us: int) -> Values:
        """Remove the join values that expire at a watermark, and return them."""
        self.load_where(_is_due(self.segments.index[DUE], watermark_us))
        at = np.flatnonzero(self.alive & _is_due(self.records["due_us"], watermark_us))
        due = self.records.take(at)
        self.remove(at)
        return due

    def save(self, watermark_us: int = 0) -> None:
        """Write the changes of the step."""
        self.write_buckets(
            lambda values: np.ones(len(values), bool),
            lambda columns, runs: {DUE: runs.least(columns["due_us"])},
        )


_LAYOUT: Layout = keyed_layout(VALUES)


def _is_due(due_us: Ints, watermark_us: int) -> Flags:
    """Whether the watermark has reached these times: bool; never NEVER_US."""
    due: Flags = (due_us <= watermark_us) & (due_us != NEVER_US)
    return due


def codes_of(keys: pa.Table, records: Records) -> Ints:
    """The number of the join value of each record among distinct ones; -1: it is not among them."""
    both = [
        pa.chunked_array([*one.chunks, other], other.type)
        for one, other in zip(keys.columns, records.keys, strict=True)
    ]
    of = factorize_rows(both, keys.num_rows + len(records)).of[keys.num_rows :]
    return np.where(of < keys.num_rows, of, -1)
