"""Retractions for merged-away windows: at once, or with the merged window's next pane.

See docs/rules/windows.md#retractions-of-merged-windows.

companions of windows:
    start_us, end_us, timing, index, on_time_index, is_first, pane_time_us    a window merged into it, and its last pane
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from beamish.contract.updates import MERGED_KIND, RETRACTION_KIND
from beamish.kinds.window.plan.part import WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.window_table import TriggerMerge
from beamish.kinds.window.step.firing import Firing, into_windows, last_panes
from beamish.kinds.window.step.step import Step
from beamish.triggers.trigger import WindowIndices


class MergedPanesPart(WindowPart):
    """Retracts the panes of merged-away windows, ``at_once`` or with the next pane; pending ones stay pending."""

    companions: Mapping[str, tuple[str, Any]] = {
        "start_us": ("int64", 0),
        "end_us": ("int64", 0),
        "timing": ("int8", 0),
        "index": ("int64", 0),
        "on_time_index": ("int64", 0),
        "is_first": ("bool", False),
        "pane_time_us": ("int64", 0),
    }

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once

    @classmethod
    def of(cls, plan: WindowPlan) -> MergedPanesPart | None:
        return cls(at_once=plan.options.retracts_at_merge) if plan.options.retracts and plan.window.merging else None

    def on_merge(self, step: Step, merge: TriggerMerge) -> None:
        gone, heir = merge.vanished
        step.table.companion_rows.pass_on(gone, heir, len(step.table))
        has_pane = step.table["has_pane"][gone]
        gone, heir = gone[has_pane], heir[has_pane]
        order = np.lexsort((step.table["start_us"][gone], step.table["end_us"][gone]))
        gone, heir = gone[order], heir[order]
        panes = last_panes(step, gone)
        if self._at_once:
            step.output.add(len(gone), kind=RETRACTION_KIND, key_at=step.table["key_at"][gone], **panes)
        else:
            step.table.companion_rows.add({"owner": heir, **panes})

    def on_panes(self, step: Step, firing: Firing, at: WindowIndices) -> None:
        """Emit the pending retractions before the next pane of these windows, by (end, start)."""
        inherited = step.table.companion_rows.remove(at)
        order = np.lexsort((inherited["start_us"], inherited["end_us"]))
        inherited = {name: column[order] for name, column in inherited.items()}
        owners = inherited.pop("owner")
        firing.add(owners, kind=RETRACTION_KIND, **inherited)
        if step.plan.suppressed:  # stored before the suppress was added: emitted as if the windows merged now
            bounds = {name: inherited[name] for name in ("start_us", "end_us")}
            firing.add(owners, kind=MERGED_KIND, **bounds, **into_windows(step.table, owners))

    def after_fire(self, step: Step, firing: Firing) -> None:
        step.table.companion_rows.remove(firing.at[firing.last])
