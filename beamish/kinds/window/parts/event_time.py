"""Time windows: their progress is the watermark (docs/rules/time.md#steps-and-clocks)."""

from __future__ import annotations

from beamish.kernels.buffers import Flags
from beamish.kinds.window.plan.part import Progress
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import admit_timed
from beamish.kinds.window.step.firing import evaluate
from beamish.kinds.window.step.step import Step
from beamish.triggers.trigger import WindowIndices


class WatermarkProgress(Progress):
    """The watermark."""

    def place(self, step: Step, bundle: Bundle) -> Flags:
        return admit_timed(step, bundle)

    def ask(self, step: Step, bundle: Bundle, came: WindowIndices) -> None:
        evaluate(step, came)
