"""The stored left rows of an as-of join: waiting ones, emitted ones that may be corrected, and their retraction.

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

from beamish.contract.inputs import signs_of
from beamish.contract.keys import times_of, to_shards
from beamish.contract.updates import EARLY
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints, cast
from beamish.kernels.groups import Groups
from beamish.kernels.order import Key, ranks, value_keys
from beamish.kinds.as_of.plan import LEFT, AsOfPlan
from beamish.kinds.versions.plan import key_column
from beamish.tables.records import RecordTable
from beamish.tables.timed_records import SpanPolicy, Timed, TimedRecords, timed_table

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
    yield from to_shards(pa.table(columns), keys, plan.left, LEFT, plan.shards)


def left_rows(plan: AsOfPlan, rows: pa.Table, at: Ints) -> LeftRows:
    """A subset of the decoded payloads."""
    rows = rows.take(pa.array(at))
    columns: dict[str, Any] = {"time_us": rows["time_us"].to_numpy()}
    if plan.has_windows:
        columns |= {name: rows[name].to_numpy() for name in ("start_us", "end_us")}
        columns["windowless"] = np.zeros(len(at), dtype=bool)
    return LeftRows.new(rows.select(cells_schema(plan).names).combine_chunks(), **columns)


def net(rows: LeftRows, takes_back: Flags) -> tuple[Ints, Ints]:
    """Cancel rows of a bundle with the retractions of equal ones.

    Args:
        rows: n rows.
        takes_back: bool, n.

    Returns:
        the indices of the remaining rows, and of retractions of earlier rows.
    """
    equal = _equal(rows)
    struck = np.minimum(equal[~takes_back].sizes(), equal[takes_back].sizes())
    return _beyond(equal, np.flatnonzero(~takes_back), struck), _beyond(equal, np.flatnonzero(takes_back), struck)


def taken_back(
    removes: LeftRows, waiting: TimedRecords[LeftRows], kept: TimedRecords[LeftRows]
) -> tuple[LeftRows, Ints]:
    """Find the retracted rows; waiting ones are removed.

    Args:
        removes: the retractions.
        waiting, kept: where to find them. Among equal rows a waiting one is removed first, then the one with the fewest panes.

    Returns:
        the emitted ones, and their indices in ``kept``.
    """
    none = np.empty(0, np.int64)
    if not len(removes):
        return removes, none
    least, greatest = int(removes["time_us"].min()), int(removes["time_us"].max())
    waits, keeps = waiting.between(least, greatest), kept.between(least, greatest)
    keeps = kept.records.by_panes(keeps)
    there = LeftRows.concat([waiting.records.take(waits), kept.records.take(keeps), removes])
    equal = _equal(there)
    count = len(waits) + len(keeps)
    found = np.arange(count)[_places(equal[:count]) < equal[count:].sizes()[equal.of[:count]]]
    waiting.remove(waits[found[found < len(waits)]])
    gone = keeps[found[found >= len(waits)] - len(waits)]
    return kept.records.take(gone), gone


def _equal(rows: LeftRows) -> Groups:
    """Groups of equal rows."""
    rank = ranks(rows.order())
    return Groups(rank, int(rank.max(initial=-1)) + 1)


def _places(groups: Groups) -> Ints:
    """Position of each entry within its group."""
    order = np.argsort(groups.of, kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = Groups(groups.of[order], groups.count).positions()
    return places


def _beyond(groups: Groups, at: Ints, struck: Ints) -> Ints:
    """The entries left after dropping the first n of each group."""
    own = groups[at]
    return at[_places(own) >= struck[own.of]]
