"""Pipelines and scripts moved to the edges of time: durations of centuries, the first and last event times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish.durations import LONGEST_US, Duration
from beamish.instants import EARLIEST_US, END_OF_TIME_US, LATEST_US, instant
from beamish.script import Bundle, ClockTo, Event, MicroBatch, Step, WatermarkTo, as_step
from beamish.testing import TestStream


@attrs.frozen
class Edge:
    """Where the times of a script are moved to.

    Attributes:
        by: factor of all durations.
        epoch_us: the new epoch, microseconds.
        keeps: whether event times beyond the years 1 to 9999 are clamped.
    """

    by: int
    epoch_us: int
    keeps: bool

    def place(self, us: int) -> int:
        """A moved time."""
        return us if us == END_OF_TIME_US else _within(us * self.by + self.epoch_us, END_OF_TIME_US)

    def pipeline(self, thing: Any) -> Any:
        """The pipeline with scaled durations, clamped to the maximum of an option."""
        if isinstance(thing, Duration):
            return Duration(_within(thing.us * self.by, LONGEST_US))
        if isinstance(thing, bm.Pipeline):
            return bm.Pipeline(self.pipeline(thing.flow))
        if isinstance(thing, Mapping):
            return {name: self.pipeline(one) for name, one in thing.items()}
        if isinstance(thing, tuple):
            return tuple(map(self.pipeline, thing))
        if not attrs.has(type(thing)):
            return thing
        fields = [field for field in attrs.fields(type(thing)) if field.init]
        parts = {str(field.alias): getattr(thing, field.name) for field in fields}
        changed = {name: self.pipeline(part) for name, part in parts.items()}
        return attrs.evolve(thing, **changed) if changed != parts else thing

    def script(self, pipeline: bm.Pipeline, script: TestStream) -> TestStream:
        """The moved script."""
        names = [source.event_time for source in pipeline.flow.sources]
        return TestStream(tuple(self._event(event, names) for event in script.events))

    def _event(self, event: Event, names: list[str]) -> Event:
        match event:
            case Bundle(rows, of):
                return Bundle(tuple(self._row(row, names) for row in rows), of)
            case WatermarkTo(us, of):
                return WatermarkTo(self.place(us), of)
            case ClockTo(us):
                return ClockTo(self._clock(us))
            case Step(rows, of, watermark_us, clock_us):
                return Step(
                    tuple(self._row(row, names) for row in rows),
                    of,
                    None if watermark_us is None else self.place(watermark_us),
                    None if clock_us is None else self._clock(clock_us),
                )
            case MicroBatch(parts, clock_us):
                moved = [self._event(part, names) for part in parts]
                return MicroBatch(tuple(map(as_step, moved)), None if clock_us is None else self._clock(clock_us))

    def _clock(self, us: int) -> int:
        return 0 if us == 0 else _within(us * self.by + max(self.epoch_us, 0), LATEST_US)

    def _row(self, row: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
        return {
            name: self._time(value) if name in names and value is not None else value for name, value in row.items()
        }

    def _time(self, seconds: float) -> Any:
        us = self.place(round(seconds * 1_000_000))
        if self.keeps:  # exact to the microsecond
            return instant(us)
        return us // 1_000_000 if us >= 0 else -(-us // 1_000_000)  # not before the first time


def _within(us: int, most: int) -> int:
    return min(max(us, -most), most)


edges = st.builds(
    lambda by, at, places, keeps: Edge(by, at + places * by * 1_000_000, keeps),
    st.sampled_from([1, 1, 997, 3_600, 86_400 * 365, 86_400 * 36_525, 4_611_686_018, 10**10]),
    st.sampled_from([0, EARLIEST_US, LATEST_US, LATEST_US + 1]),
    st.integers(-30, 30),
    st.booleans(),
)
