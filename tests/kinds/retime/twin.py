"""Panes at the time in a column of theirs (rules/stage-rows.md#event-time-of-stages)."""

from __future__ import annotations

import math
from typing import Any

import attrs

from beamish import Pane, PaneKind
from beamish.flow import Flow, Panes
from beamish.kinds.retime.stage import RetimeStage
from beamish.script import Step
from beamish.windows.option import END_OF_TIME_US
from tests.kinds.refine.strategy import meaning
from tests.twin.fields import Fields
from tests.twin.moments import moment, moment_us
from tests.twin.run import NO_WATERMARK, out_of_range, twin_of


class RetimeTwin:
    """Such a stage: it stores nothing."""

    def __init__(self, flow: Flow) -> None:
        (taken,) = flow.inputs
        assert isinstance(flow.stage, RetimeStage)
        assert isinstance(taken, Panes)
        self.stage, self.where = flow.stage, taken.where
        self.twin = twin_of(taken.flow)
        self.columns = getattr(self.twin, "columns", ())

    @property
    def watermark(self) -> float:
        """That of the stage before, less the delay."""
        now: float = self.twin.watermark
        return now if now in (NO_WATERMARK, END_OF_TIME_US) else now - self.stage.delay.us

    def step(self, step: Step) -> list[Pane]:
        """The panes of the stage before that have a time."""
        panes = [pane for pane in self.twin.step(step) if pane.kind is not PaneKind.DROPPED]
        return [
            attrs.evolve(pane, window=None, timestamp=moment(time_us))
            for pane in panes
            if (time_us := self.time_of(pane)) is not None
        ]

    def time_of(self, pane: Pane) -> int | None:
        """The time in the column of a pane; None: it is dropped, or the condition leaves it out."""
        row = Fields({**pane.key, **pane.values})
        shown = {**row, "timing": str(pane.timing), "is_last": pane.is_last}
        value: Any = row.get(self.stage.column)
        if (self.where is not None and not meaning(self.where)(shown)) or value is None:
            return None
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return None if out_of_range(moment_us(value)) else moment_us(value)


TWIN = RetimeTwin
