"""What a step gives: panes, retractions and dropped rows, gathered as columns and made into one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.adapters.one_input import merged_name
from beamish.engine.windowing.window_table import NO_ENTRY, NO_STAMP, Pool
from beamish.kernels.reserved import INPUT
from beamish.pane import DropReason, PaneKind, PaneTiming
from beamish.plan.schemas import PANE, TIMESTAMP
from beamish.plan.window_plan import WindowPlan
from beamish.windows.option import END_OF_TIME_US

KINDS = (PaneKind.PANE, PaneKind.RETRACTION, PaneKind.DROPPED)
TIMINGS = (PaneTiming.EARLY, PaneTiming.ON_TIME, PaneTiming.LATE, PaneTiming.UNKNOWN)
REASONS = (DropReason.EXPIRED, DropReason.WINDOW_FINISHED, DropReason.NULL_EVENT_TIME)
PANE_KIND, RETRACTION_KIND, DROPPED_KIND = range(3)
EARLY, ON_TIME, LATE, UNKNOWN = range(4)
EXPIRED, WINDOW_FINISHED, NULL_EVENT_TIME = range(3)
NO_LATENESS = np.iinfo(np.int64).min

_COLUMNS: dict[str, tuple[str, Any]] = {
    "key_at": ("int64", NO_ENTRY),
    "start_us": ("int64", 0),
    "end_us": ("int64", 0),
    "windowless": ("bool", False),
    "kind": ("int8", PANE_KIND),
    "timing": ("int8", UNKNOWN),
    "index": ("int64", 0),
    "on_time_index": ("int64", -1),
    "is_first": ("bool", False),
    "is_last": ("bool", False),
    "stamp_us": ("int64", NO_STAMP),
    "live_at": ("int64", NO_ENTRY),
    "reason": ("int8", 0),
    "late_by_us": ("int64", NO_LATENESS),
    "row_at": ("int64", NO_ENTRY),
}


class Output:
    """Rows of output in the order in which they come out."""

    def __init__(self, plan: WindowPlan) -> None:
        self._plan = plan
        self._blocks: list[dict[str, NDArray[Any]]] = []
        self._dropped_rows = Pool(pa.schema(list(plan.row_type)))

    def add(self, rows: int, **columns: Any) -> None:
        """Add a block of rows; a column that is not given has its usual value."""
        if rows:
            usual = {name: np.full(rows, value, dtype) for name, (dtype, value) in _COLUMNS.items()}
            self._blocks.append({**usual, **{name: np.broadcast_to(column, rows) for name, column in columns.items()}})

    def add_dropped_rows(self, rows: pa.Table) -> NDArray[np.int64]:
        """Take up rows that were dropped; gives where they are, for ``row_at``."""
        if self._plan.merges:
            return self._dropped_rows.append(_by_input(self._plan, rows))
        return self._dropped_rows.append(rows.select([field.name for field in self._plan.row_type]))

    def reorder_last(self, blocks: int, position: NDArray[np.int64]) -> None:
        """Put the last blocks' rows in order of ``position``; equal ones keep the order they were added in."""
        last = self._blocks[-blocks:]
        order = np.argsort(position, kind="stable")
        merged = {name: np.concatenate([block[name] for block in last])[order] for name in _COLUMNS}
        self._blocks[-blocks:] = [merged]

    def table(self, keys: Pool, values: Pool) -> pa.Table:
        """All rows in the plan's ``pane_schema``."""
        plan = self._plan
        if not self._blocks:
            return plan.pane_schema.empty_table()
        column = {name: np.concatenate([block[name] for block in self._blocks]) for name in _COLUMNS}
        shown = values.take(column["live_at"])
        if plan.join is not None:
            row, pairs = plan.join.explode(shown.column(0).combine_chunks(), column["kind"] == DROPPED_KIND)
            column = {name: entries[row] for name, entries in column.items()}
            shown = pa.table([pairs], schema=plan.output_schema)
        windows = pa.StructArray.from_arrays(
            [_bounds(column["start_us"], column["end_us"]), _bounds(column["end_us"], column["end_us"])],
            names=["start", "end"],
            mask=pa.array(column["windowless"]),
        )
        panes = pa.StructArray.from_arrays(
            [
                _names(KINDS, column["kind"]),
                _names(TIMINGS, column["timing"]),
                *(pa.array(column[name]) for name in ("index", "on_time_index", "is_first", "is_last")),
            ],
            fields=list(PANE),
        )
        columns = [
            *keys.take(column["key_at"]).columns,
            windows,
            *shown.columns,
            panes,
            self._timestamps(column),
        ]
        if plan.options.with_dropped:
            columns.append(self._dropped(column))
        return pa.table(columns, schema=plan.pane_schema)

    def _timestamps(self, column: dict[str, NDArray[Any]]) -> pa.Array:
        last = column["end_us"] - 1
        stamp = np.where(column["stamp_us"] == NO_STAMP, last, np.minimum(column["stamp_us"], column["end_us"] - 1))
        missing = (stamp == END_OF_TIME_US - 1) | (column["kind"] == DROPPED_KIND)
        return pa.array(stamp, mask=missing).cast(TIMESTAMP)

    def _dropped(self, column: dict[str, NDArray[Any]]) -> pa.Array:
        rows = self._dropped_rows.take(column["row_at"])
        late_by = pa.array(column["late_by_us"], mask=column["late_by_us"] == NO_LATENESS)
        row = pa.StructArray.from_arrays([c.combine_chunks() for c in rows.columns], fields=list(self._plan.row_type))
        not_dropped = pa.array(column["kind"] != DROPPED_KIND)
        return pa.StructArray.from_arrays(
            [_names(REASONS, column["reason"]), late_by, row],
            fields=list(self._plan.pane_schema.field("dropped").type),
            mask=not_dropped,
        )


def _by_input(plan: WindowPlan, rows: pa.Table) -> pa.Table:
    """Rows of a merge as a struct for each input, of which the row's own is not null."""
    which = rows[INPUT].to_numpy()
    structs = []
    for number, input_ in enumerate(plan.row_type):
        columns = [rows[merged_name(input_.name, field.name)].combine_chunks() for field in input_.type]
        mask = pa.array(which != number)
        structs.append(pa.StructArray.from_arrays(columns, fields=list(input_.type), mask=mask))
    return pa.table(structs, schema=pa.schema(list(plan.row_type)))


def _bounds(us: NDArray[np.int64], end_us: NDArray[np.int64]) -> pa.Array:
    """Starts or ends of windows; null for the one that ends at the end of time."""
    return pa.array(us, mask=end_us == END_OF_TIME_US).cast(TIMESTAMP)


def _names(names: tuple[str, ...], number: NDArray[np.int8]) -> pa.Array:
    return pa.array([str(name) for name in names]).take(pa.array(number))
