"""Left rows in memory: those that wait until they are due, and emitted ones that may be corrected.

columns (one entry per row; ``_us``: int64, microseconds since the epoch):
    time_us             its time
    start_us, end_us    for a pane the window
    windowless          bool: without a window
    panes               int64: how many panes it emitted
    later_panes         int64: how many of them were not EARLY
    timing              int8: of the last pane
    shown               bool: whether the last pane is live
cells: the columns it is joined on as ``key.<name>``, its own as ``left.<name>``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.pane_columns import EARLY
from beamish.contract.sharding import times_of, to_shards
from beamish.contract.signs import signs_of
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Ints
from beamish.kernels.buffers import cast
from beamish.kernels.comparable import value_keys
from beamish.kernels.order import Key
from beamish.kinds.as_of.plan import LEFT, AsOfPlan
from beamish.kinds.versions.packing import key_column
from beamish.tables.segmented_records import RecordTable
from beamish.tables.spans import SpanPolicy
from beamish.tables.timed_records import Timed, TimedRecords, timed_table

WAITING, KEPT = "waiting", "kept"
"""Prefixes of the entries of waiting rows, and of emitted rows that may be corrected."""


@attrs.frozen(eq=False)
class LeftRows(Timed):
    """Rows of the left input."""

    TIME = "time_us"
    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        "time_us": ("int64", 0),
        "start_us": ("int64", 0),
        "end_us": ("int64", 0),
        "windowless": ("bool", True),
        "panes": ("int64", 0),
        "later_panes": ("int64", 0),
        "timing": ("int8", EARLY),
        "shown": ("bool", False),
    }

    @property
    def own(self) -> list[pa.Array]:
        """Their own columns."""
        return self.named("left.")

    def order(self) -> list[Key]:
        """Sort keys: by time, then by their own columns, then by window."""
        windowless = self["windowless"].astype(np.int64)
        return [self["time_us"], *value_keys(self.own), windowless, self["end_us"], self["start_us"]]

    def by_panes(self, at: Ints) -> Ints:
        """Order of equal rows: by number of panes, then by number of panes when due."""
        return at[np.lexsort((self["later_panes"][at], self["panes"][at]))]


def cells_schema(plan: AsOfPlan) -> pa.Schema:
    """The join columns and their own columns."""
    keys = [pa.field(f"key.{field.name}", field.type) for field in plan.table.key_schema]
    return pa.schema([*keys, *(pa.field(f"left.{field.name}", field.type) for field in plan.left_schema)])


def left_table(plan: AsOfPlan, name: str, policy: SpanPolicy) -> RecordTable[TimedRecords[LeftRows]]:
    """The table of rows under a name."""
    keys = [f"key.{key}" for key in plan.table.key_schema.names]
    return timed_table(name, LeftRows.none(cells_schema(plan)), keys, policy)


def pack_left(plan: AsOfPlan, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
    """Pack rows, one payload per shard.

    Args:
        plan: the join's.
        rows: a source's, its columns and ``EVENT_TIME``; or panes.
    """
    rows = rows.combine_chunks()
    names, key_schema = plan.left.keys, plan.table.key_schema
    columns = {f"key.{key.name}": key_column(rows[name], key.type) for name, key in zip(names, key_schema, strict=True)}
    keys = list(columns.values())
    columns |= {f"left.{field.name}": cast(rows[field.name].combine_chunks(), field.type) for field in plan.left_schema}
    columns["time_us"] = times_of(plan.left, rows)
    if plan.has_windows:
        window = rows["window"].combine_chunks()
        columns["start_us"] = pc.fill_null(window.field("start").cast(pa.int64()), 0)
        columns["end_us"] = pc.fill_null(window.field("end").cast(pa.int64()), END_OF_TIME_US)
    if plan.left.retracts:
        columns["sign"] = signs_of(plan.left, rows)
    if plan.options.with_dropped:
        own = [columns[f"left.{field.name}"] for field in plan.left_schema]
        columns["row"] = pa.StructArray.from_arrays(own, fields=list(plan.left_schema))
    yield from to_shards(pa.table(columns), keys, LEFT, plan.shards)


def left_rows(plan: AsOfPlan, rows: pa.Table, at: Ints) -> LeftRows:
    """A subset of the decoded payloads."""
    rows = rows.take(pa.array(at))
    columns: dict[str, Any] = {"time_us": rows["time_us"].to_numpy()}
    if plan.has_windows:
        columns |= {name: rows[name].to_numpy() for name in ("start_us", "end_us")}
        columns["windowless"] = np.zeros(len(at), dtype=bool)
    return LeftRows.new(rows.select(cells_schema(plan).names).combine_chunks(), **columns)
