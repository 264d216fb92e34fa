"""Timestamps of panes: the end of the window, or the earliest or latest event time of their new rows.

See docs/rules/panes.md#pane-timestamps.

A combiner reads the rows that came while the watermark was before the end of the window they landed in. What it has
seen since the window's last pane stands in the window table:

    pane_time_us    int64[n], microseconds since the epoch; NO_VALUE if no such row came
"""

from __future__ import annotations

import numpy as np

from beamish.instants import NO_TIME_US
from beamish.kernels.arrays import NO_VALUE, Ints
from beamish.kinds.window.bundle import Bundle
from beamish.kinds.window.entries import Entries
from beamish.kinds.window.step import Step
from beamish.kinds.window.trigger_tree import TriggerMerge
from beamish.modes import TimestampCombiner
from beamish.triggers.trigger import NEVER_US, WindowIndices


def add_times(step: Step, bundle: Bundle, entries: Entries, target: WindowIndices) -> None:
    """Entries have come into their targets (intp, one per entry): combine their event times."""
    if not step.plan.combines_timestamps:
        return
    if step.plan.counts_rows:  # as of the global window: all rows count that have an event time
        in_time = bundle.time_us[entries.row] != NO_VALUE
    else:
        in_time = (step.watermark_us < step.table["end_us"][target]) & (bundle.time_us[entries.row] != NO_TIME_US)
    target, row = target[in_time], entries.row[in_time]
    pane_time = step.table["pane_time_us"]
    if step.plan.options.combiner is TimestampCombiner.EARLIEST:
        unset = target[pane_time[target] == NO_VALUE]
        pane_time[unset] = NEVER_US
        np.minimum.at(pane_time, target, bundle.first_us[row])
    else:
        np.maximum.at(pane_time, target, bundle.last_us[row])


def merged_times(step: Step, m: TriggerMerge) -> Ints:
    """The ``pane_time_us`` of windows that others become, one per result."""
    pane_time = step.table["pane_time_us"]
    if step.plan.options.combiner is TimestampCombiner.LATEST:
        return m.greatest(pane_time)  # type: ignore[no-any-return]
    least = m.least(np.where(pane_time == NO_VALUE, NEVER_US, pane_time))
    return np.where(least == NEVER_US, NO_VALUE, least)
