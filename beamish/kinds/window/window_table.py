"""The window table: one row per (key, window) that a step works on.

Small numbers are numpy columns in ``columns``. Keys, accumulators and the values last emitted are Arrow and stay
where they are, in pools; a window points at its entry (``key_at``, ``state_at``, ``values_at``), so that a change is an
entry appended and a pointer moved.

stored columns (one entry per window; ``_us``: int64, microseconds since the epoch):
    start_us, end_us    the window; for count windows row numbers, not microseconds
    closed              bool: its trigger has finished, rows are dropped until it expires
    unemitted_rows      int64: rows that are in no pane yet
    unemitted_since_us  the progress (step.py) at the arrival of the first of them; NEVER_US if there is none
    net_rows            int64: rows in it less retractions; counted for retracting input, otherwise 0
    pane_time_us        timestamp of its next pane with a combiner; NO_VALUE without a row
    panes               int64: number of panes emitted
    non_early_panes     int64: number of them that were not EARLY
    has_pane            bool: its last pane is live: emitted and not retracted
    timing              int8: of the last pane (TIMINGS)
    last_pane_time_us   timestamp of the last pane under a combiner
    asks_at_end         bool: it is asked when its progress reaches its end
    trigger.../...      the trigger tree's (trigger_tree.py)
    ...                 those of the parts (parts.py)
working columns:
    gone                bool: it expired or was merged away; not written back
    touched             bool: it differs from what is stored
    segment             int64: the segment it was read from; NO_VALUE if from none
    group               int64: of windows of rows the group (row_windows.py) whose rows it counts; NO_ENTRY: not looked for yet
    key_at, state_at, values_at     int64: its entries in the pools of keys, of accumulators, and of the values last emitted (kept where
                        panes are retracted or compared), as ``<name>_at`` in the pools of parts; NO_ENTRY if it has none

Two markers: NO_VALUE, the least int64, for a missing value, and ``NEVER_US``, the greatest, for a time that is never reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.errors import UserFunctionError
from beamish.kernels.arrays import NO_ENTRY, NO_VALUE, Ints
from beamish.kernels.codec import ALLOWED, decode, encode
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.trigger_tree import TriggerState, trigger_columns
from beamish.tables.pool import Pool
from beamish.tables.working_table import Columns, Companions, Declared, WorkingTable
from beamish.triggers.trigger import NEVER_US, WindowIndices

STORED_COLUMNS: Declared = {
    "start_us": ("int64", 0),
    "end_us": ("int64", 0),
    "closed": ("bool", False),
    "unemitted_rows": ("int64", 0),
    "unemitted_since_us": ("int64", NEVER_US),
    "net_rows": ("int64", 0),
    "pane_time_us": ("int64", NO_VALUE),
    "panes": ("int64", 0),
    "non_early_panes": ("int64", 0),
    "has_pane": ("bool", False),
    "timing": ("int8", 0),
    "last_pane_time_us": ("int64", NO_VALUE),
    "asks_at_end": ("bool", False),
}
_WORKING_COLUMNS: Declared = {
    "values_at": ("int64", NO_ENTRY),
}


class WindowTable(WorkingTable):
    """The windows of a step.

    Args:
        plan: the stage's plan.
        instead: values of columns that are set instead of read from stored windows.
        missing: values of columns that stored windows lack.
    """

    companion_rows: Companions

    def __init__(
        self, plan: WindowPlan, *, instead: Mapping[str, Any] | None = None, missing: Mapping[str, Any] | None = None
    ) -> None:
        self._plan, self._instead, self._missing = plan, instead or {}, missing or {}
        kept: Declared = {name: column for part in plan.parts for name, column in part.columns.items()}
        self.keys, self.state = Pool(plan.key_schema), Pool(plan.state_schema)
        self.values = Pool(plan.value_schema)
        self.pools = {name: Pool(schema) for part in plan.parts for name, schema in part.pools.items()}
        pools = {"key.": ("key_at", self.keys), "state.": ("state_at", self.state)}
        pools |= {f"{name}.": (f"{name}_at", pool) for name, pool in self.pools.items()}
        pools |= {"live.": ("values_at", self.values)} if plan.options.keeps_values else {}
        trigger = plan.options.trigger
        super().__init__(
            {**STORED_COLUMNS, **kept, **dict(trigger_columns(trigger))},
            {**_WORKING_COLUMNS, **plan.progress.working},
            pools,
        )
        self.trigger = TriggerState(trigger, self.columns)
        companions = {name: column for part in plan.parts for name, column in part.companions.items()}
        self.companion_rows = Companions(companions, "live.", self.values)

    def read(self, stored: pa.Table, segment: Ints) -> Ints:
        at = super().read(stored, segment)
        plan, names = self._plan, stored.schema.names
        if (
            plan.options.keeps_values
            and not plan.options.retracts
            and not any(name.startswith("live.") for name in names)
        ):
            self["has_pane"][at] = False  # what it held was not kept, so the next one is as good as the first
        return at

    def given(self, stored: pa.Table) -> Columns:
        given = {**self._instead, **{name: v for name, v in self._missing.items() if name not in stored.schema.names}}
        return {name: np.full(stored.num_rows, value) for name, value in given.items()}

    def new_entry(self, prefix: str) -> pa.Table | None:
        return self._plan.new_state if prefix == "state." else None

    def of_stored(self, column: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
        if dtype != "object":
            return super().of_stored(column, dtype)
        cells = np.empty(len(column), dtype=object)
        cells[:] = [None if cell is None else decode(cell) for cell in column.to_pylist()]
        return cells

    def to_stored(self, column: NDArray[Any]) -> pa.Array:
        if column.dtype != object:
            return super().to_stored(column)
        try:
            return pa.array([None if cell is None else encode(cell) for cell in column.tolist()], pa.binary())
        except TypeError as error:
            raise UserFunctionError(
                f"a trigger of your own: its state is or holds {error}, which cannot be kept in the checkpoint; make it of {ALLOWED}"
            ) from error

    def cut(self, at: Ints, first: Ints) -> Iterator[pa.Table]:
        stored = self.stored(at)  # at once: many segments cost about as much as one
        yield from (stored.slice(own, size) for own, size in zip(first, np.diff(first, append=len(at)), strict=True))

    def append_windows(
        self, start_us: NDArray[np.int64], end_us: NDArray[np.int64], key_at: NDArray[np.int64]
    ) -> WindowIndices:
        """Append new windows. Returns their indices."""
        return self.append(len(start_us), {"start_us": start_us, "end_us": end_us, "key_at": key_at})
