"""The twin of ``HoldBack``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from beamish import Pane
from beamish.flow import Flow
from beamish.script import Step
from tests.kinds.hold_back.stage import HoldBack
from tests.kinds.versions.twin import Arrival, Side
from tests.twin.moments import moment


class HoldBackTwin:
    """Rows that wait for the watermark."""

    def __init__(self, flow: Flow) -> None:
        assert isinstance(flow.stage, HoldBack)
        self.span_us, self.keys = flow.stage.span.us, flow.takes[0].keys
        self.side = Side(flow.inputs[0], flow.takes[0])
        self.held: list[Arrival] = []
        self.clock = 0

    @property
    def watermark(self) -> float:
        return self.side.watermark - self.span_us

    def step(self, step: Step) -> list[Pane]:
        """The rows that the watermark has passed, ordered by time and then by columns."""
        self.side.step(step, self.clock)
        self.clock = self.clock if step.clock_us is None else step.clock_us
        arrived, self.held = sorted([*self.held, *self.side.panes, *self.side.rows], key=in_order), []
        return list(self.let_go(arrived))

    def let_go(self, arrived: list[Arrival]) -> Iterator[Pane]:
        for one in arrived:
            if one.time_us is not None and one.time_us > self.watermark:
                self.held.append(one)
                continue
            key = {name: one.values[name] for name in self.keys}
            values = {name: value for name, value in one.values.items() if name not in key}
            time = None if one.time_us is None else moment(one.time_us)
            yield Pane(key, None, values, is_first=True, is_last=True, timestamp=time)


def in_order(one: Arrival) -> Any:
    return [(value is None, value) for value in (one.time_us, *one.values.values())]


TWIN = HoldBackTwin
