"""Time windows: their progress is the watermark (docs/rules/time.md#steps-and-clocks)."""

from __future__ import annotations

import numpy as np

from beamish.contract.clocks import in_range
from beamish.instants import NO_TIME_US
from beamish.kernels.buffers import Flags
from beamish.kernels.column_names import WINDOW_START
from beamish.kinds.window.plan.part import Progress
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_untimed
from beamish.kinds.window.step.firing import evaluate
from beamish.kinds.window.step.step import Step
from beamish.triggers.trigger import WindowIndices


class WatermarkProgress(Progress):
    """The watermark."""

    def place(self, step: Step, bundle: Bundle) -> Flags:
        timed = _timed_rows(bundle)
        drop_untimed(step, bundle, timed)
        for part in step.parts:
            timed = part.admit_keys(step, bundle, timed)
        return timed

    def ask(self, step: Step, bundle: Bundle, came: WindowIndices) -> None:
        evaluate(step, came)


def _timed_rows(bundle: Bundle) -> Flags:
    """Which of a bundle's rows have an event time that is in range: bool, one per row.

    All slices do (packing.py leaves the others out), and windows that panes bring along need no time. Nor does the global window.
    """
    if bundle.plan.preaggregates or WINDOW_START in bundle.plan.schema.names:
        return np.ones(len(bundle.time_us), dtype=bool)
    timed = in_range(bundle.time_us)
    all_of_time = bundle.plan.window.is_all_of_time and bundle.plan.takes_panes
    return timed | (bundle.time_us == NO_TIME_US) if all_of_time else timed
