"""The window table: one row per (key, window) that a step works on.

Small numbers are numpy columns in ``columns``. Keys, accumulators and the values last emitted are Arrow and stay
where they are, in pools; a window points at its entry (``key_at``, ``state_at``, ``values_at``, ``ids_at``), so that a change is
an entry appended and a pointer moved.

stored columns (one entry per window; ``_us``: int64, microseconds since the epoch):
    start_us, end_us    the window; of windows of rows numbers of rows, not microseconds
    closed              bool: its trigger has finished, rows are dropped until it expires
    unemitted_rows      int64: rows that are in no pane yet
    unemitted_since_us  the progress (step.py) when the first of them came; NEVER_US if there is none
    net_rows            int64: rows in it less those removed; counted where rows can be removed, else 0
    pane_time_us        timestamp of its next pane under a combiner; NO_VALUE if no row counts for it
    panes               int64: number of panes emitted
    non_early_panes     int64: number of them that were not EARLY
    has_pane            bool: its last pane stands, it was emitted and not taken back
    timing              int8: of the last pane (TIMINGS)
    last_pane_time_us   timestamp of the last pane under a combiner
    asks_at_end         bool: it is asked when its progress passes its end
    latest_us           the greatest event time of its rows, or NO_VALUE; where keys without rows are forgotten
    rows                int64: rows put into it, where a budget of them is kept
    keeps_until_us      the least watermark at which a row of it is no longer kept, or NEVER_US; where a join says for how long
    trigger.../...      the trigger tree's (trigger_tree.py)
working columns:
    gone                bool: it expired or was merged away; not written back
    touched             bool: it differs from what is stored
    segment             int64: the segment it was read from; NO_VALUE if from none
    group               int64: of windows of rows the group (reaches.py) whose rows it counts; NO_ENTRY: not looked for yet
    key_at, state_at, values_at, ids_at    int64: its entries in the pools of keys, of accumulators, of the values last
                        emitted (kept where panes are retracted or compared), and of the ids of the rows that it took (kept
                        where those that come again are dropped from it); NO_ENTRY if it has none

Two numbers stand for nothing: NO_VALUE, the least int64, where there is none, and ``NEVER_US``, the greatest, for a time
that does not come.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import NO_ENTRY, NO_VALUE
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.trigger_tree import Columns, TriggerState, new_columns, trigger_columns
from beamish.tables.pool import Pool
from beamish.triggers.trigger import NEVER_US, WindowIndices

STORED_COLUMNS: dict[str, tuple[str, Any]] = {
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
_CUT_COLUMNS: dict[str, tuple[str, Any]] = {"keeps_until_us": ("int64", NEVER_US)}
LATEST = "latest_us"
_FORGOTTEN_COLUMNS: dict[str, tuple[str, Any]] = {LATEST: ("int64", NO_VALUE)}
_WORKING_COLUMNS: dict[str, tuple[str, Any]] = {
    "gone": ("bool", False),
    "touched": ("bool", False),
    "segment": ("int64", NO_VALUE),
    "group": ("int64", NO_ENTRY),
    "key_at": ("int64", NO_ENTRY),
    "state_at": ("int64", NO_ENTRY),
    "values_at": ("int64", NO_ENTRY),
    "ids_at": ("int64", NO_ENTRY),
}


class WindowTable:
    """The windows a step works on."""

    def __init__(self, plan: WindowPlan) -> None:
        trigger = plan.options.trigger
        kept: dict[str, tuple[str, Any]] = {"rows": ("int64", 0)} if plan.counts_rows_put_in else {}
        kept |= _CUT_COLUMNS if plan.cuts else {}
        kept |= _FORGOTTEN_COLUMNS if plan.forgets else {}
        self._forget_after_us = plan.forget_after_us
        self.stored: dict[str, tuple[str, Any]] = {**STORED_COLUMNS, **kept, **dict(trigger_columns(trigger))}
        self._declared = {**self.stored, **_WORKING_COLUMNS}
        self.columns: Columns = new_columns(self._declared, 0)
        self.trigger = TriggerState(trigger, self.columns)
        self.keys, self.state = Pool(plan.key_schema), Pool(plan.state_schema)
        self.values, self.ids = Pool(plan.value_schema), Pool(plan.ids_schema)

    def __len__(self) -> int:
        return len(self.columns["start_us"])

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.columns[column]  # type: ignore[no-any-return]

    def forgotten_us(self, at: WindowIndices) -> NDArray[np.int64]:
        """The watermark at which the keys of windows are forgotten: int64; END_OF_TIME_US: only then."""
        span = self._forget_after_us
        if span is None:
            return np.full(len(at), END_OF_TIME_US)
        latest = self.columns[LATEST][at]
        return np.where(latest == NO_VALUE, END_OF_TIME_US, np.minimum(latest, END_OF_TIME_US - span) + span)

    def append(self, columns: Columns, rows: int) -> WindowIndices:
        """Append windows; a column that is not given has its value for new windows. Gives their indices."""
        first = len(self)
        if rows:
            new = new_columns({name: column for name, column in self._declared.items() if name not in columns}, rows)
            for name, column in self.columns.items():
                self.columns[name] = np.concatenate([column, columns[name] if name in columns else new[name]])
        return np.arange(first, first + rows)

    def append_windows(
        self, start_us: NDArray[np.int64], end_us: NDArray[np.int64], key_at: NDArray[np.int64]
    ) -> WindowIndices:
        """Append new windows. Gives their indices."""
        return self.append({"start_us": start_us, "end_us": end_us, "key_at": key_at}, len(start_us))
