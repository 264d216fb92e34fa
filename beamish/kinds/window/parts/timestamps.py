"""Timestamps of panes under a combiner: the earliest or latest event time of their new rows.

See docs/rules/panes.md#pane-timestamps.

A combiner uses the rows that arrived while the watermark was before the end of their window. Its value since the window's last
pane is in the window table:

    pane_time_us    int64[n], microseconds since the epoch; NO_VALUE without such a row
"""

from __future__ import annotations

import numpy as np

from beamish.instants import NO_TIME_US
from beamish.kernels.buffers import NO_VALUE
from beamish.kernels.groups import Groups
from beamish.kinds.window.plan.part import WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.window_table import TriggerMerge
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.entries import Entries
from beamish.kinds.window.step.step import Step
from beamish.modes import TimestampCombiner
from beamish.triggers.trigger import NEVER_US, WindowIndices


class TimestampsPart(WindowPart):
    """Gives panes the ``latest`` time of their rows, or the earliest."""

    reads_times = True

    def __init__(self, *, latest: bool) -> None:
        self._latest = latest

    @classmethod
    def of(cls, plan: WindowPlan) -> TimestampsPart | None:
        return cls(latest=plan.options.combiner is TimestampCombiner.LATEST) if plan.options.combines_times else None

    def on_rows(self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices) -> None:
        target, row = at[groups.of], entries.row
        if not step.plan.progress.by_watermark:  # as of the global window: all rows count that have an event time
            in_time = bundle.time_us[row] != NO_VALUE
        else:
            in_time = (step.progress(target) < step.table["end_us"][target]) & (bundle.time_us[row] != NO_TIME_US)
        target, row = target[in_time], row[in_time]
        pane_time = step.table["pane_time_us"]
        if self._latest:
            np.maximum.at(pane_time, target, bundle.last_us[row])
        else:
            unset = target[pane_time[target] == NO_VALUE]
            pane_time[unset] = NEVER_US
            np.minimum.at(pane_time, target, bundle.first_us[row])

    def on_merge(self, step: Step, merge: TriggerMerge) -> None:
        pane_time = step.table["pane_time_us"]
        if self._latest:
            pane_time[merge.into] = merge.greatest(pane_time)
        else:
            least = merge.least(np.where(pane_time == NO_VALUE, NEVER_US, pane_time))
            pane_time[merge.into] = np.where(least == NEVER_US, NO_VALUE, least)
