"""A stage that fills gaps (rules/gaps.md): all rows of a key so far, and the rows filled between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from beamish import DropReason, Pane, PaneKind
from beamish.flow import Flow
from beamish.instants import LATEST_US, instant
from beamish.kinds.gaps.option import FillBy
from beamish.script import Step
from beamish.windows.option import END_OF_TIME_US
from tests.kinds.deduplicate.twin import dropped_first
from tests.kinds.versions.twin import Arrival, Side, late_by, name_of
from tests.twin.moments import moment
from tests.twin.order import same, spark_order
from tests.twin.run import NO_WATERMARK


class GapsTwin:
    """Such a stage."""

    def __init__(self, flow: Flow) -> None:
        self.stage = flow.stage
        self.options, self.lateness_us = flow.stage.options, flow.stage.lateness.us
        self.side = Side(flow.inputs[0], flow.takes[0])
        self.keys = list(flow.takes[0].keys)
        self.time = flow.takes[0].event_time
        self.rows: dict[Any, list[tuple[int, dict[str, Any]]]] = {}
        self.filled: dict[Any, dict[int, dict[str, Any]]] = {}
        self.names: list[str] = []
        self.now: float = NO_WATERMARK
        self.clock = 0

    @property
    def watermark(self) -> float:
        """Behind the input's, so that filled rows are on time (rules/gaps.md#gaps-when)."""
        if self.now in (NO_WATERMARK, END_OF_TIME_US):
            return self.now
        linear = self.options.by is FillBy.LINEAR
        return self.now - self.options.step.us - (self.options.within.us if linear else 0)

    def step(self, step: Step) -> list[Pane]:
        """Panes of the stage before, then the watermark, then rows of a source; then the rows that are filled."""
        self.side.step(step, self.clock)
        out = dropped_first(self.take(self.side.panes))
        self.now = max(self.now, self.side.watermark)
        if step.clock_us is not None:
            self.clock = step.clock_us
        return [*out, *dropped_first(self.take(self.side.rows)), *self.fill()]

    def take(self, arrivals: Sequence[Arrival]) -> Iterator[Pane]:
        """A bundle of rows, by time and value."""
        kept = []
        for one in arrivals:
            reason = one.no_time()
            if reason is None and self.settled(self.cell(one.time_us)):
                reason = DropReason.EXPIRED
            if reason is None:
                kept.append(one)
                self.names = list(one.values)
            else:
                yield from self.dropped(one, reason)
        for one in sorted(kept, key=lambda one: (one.time_us, *map(spark_order, self.numbers(one.values).values()))):
            values = self.numbers(one.values)
            self.rows.setdefault(name_of(self.side.key_of(values)), []).append((one.time_us, values))
            yield self.pane(values, one.time_us, filled=False)

    def numbers(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a row in the output: with linear, numbers are floats."""
        linear = self.options.by is FillBy.LINEAR
        return {
            name: float(value) if linear and self.varies(name) and is_number(value) else value
            for name, value in values.items()
            if name.lower() != "timestamp"
        }

    def varies(self, name: str) -> bool:
        return name not in (*self.keys, self.time)

    def cell(self, time_us: int) -> int:
        step, offset = self.options.step.us, self.options.offset.us
        return (time_us - offset) // step * step + offset

    def fill(self) -> Iterator[Pane]:
        """Compare what is filled now with what was filled before."""
        out = []
        for key, rows in self.rows.items():
            before, now = self.filled.get(key, {}), dict(self.fills(rows))
            now = {time: values for time, values in before.items() if time not in now and self.settled(time)} | now
            self.filled[key] = now
            for time in sorted({*before, *now}):
                old, new = before.get(time), now.get(time)
                if old is not None and new is not None and same(old, new):
                    continue
                if old is not None:
                    out.append((time, self.pane(old, time, filled=True, kind=PaneKind.RETRACTION)))
                if new is not None:
                    out.append((time, self.pane(new, time, filled=True)))
        return iter([pane for _, pane in sorted(out, key=lambda one: one[0])])

    def settled(self, time_us: int) -> bool:
        return self.now == END_OF_TIME_US or time_us + self.options.step.us + self.lateness_us <= self.now

    def fills(self, rows: Sequence[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The filled rows of a key at the watermark: time and values."""
        step, within, linear = self.options.step.us, self.options.within.us, self.options.by is FillBy.LINEAR

        def place(row: tuple[int, dict[str, Any]]) -> tuple[Any, ...]:
            return (row[0], *(spark_order(value) for name, value in row[1].items() if self.carries(name, value)))

        ordered = sorted(rows, key=place)
        for number, (time, values) in enumerate(ordered):
            after = ordered[number + 1] if number + 1 < len(ordered) else None
            cell = self.cell(time) + step
            while cell <= min(time + within, LATEST_US) and (after is None or cell < self.cell(after[0])):
                if linear:
                    if after is not None and after[0] - time <= within and self.cell(after[0]) + step <= self.now:
                        yield cell, self.between(time, values, *after, cell)
                elif cell + step <= self.now:
                    others = values if self.options.by is FillBy.LAST else {}
                    yield cell, self.values_at(values, cell, others.get)
                cell += step

    def carries(self, name: str, value: Any) -> bool:
        if not self.varies(name) or self.options.by is FillBy.NULL:
            return False
        return self.options.by is FillBy.LAST or is_number(value) or value is None

    def between(
        self, time: int, values: Mapping[str, Any], after: int, others: Mapping[str, Any], at: int
    ) -> dict[str, Any]:
        share = (at - time) / (after - time)

        def of(name: str) -> Any:
            left, right = values[name], others[name]
            return left + (right - left) * share if is_number(left) and is_number(right) else None

        return self.values_at(values, at, of)

    def values_at(self, values: Mapping[str, Any], at: int, of: Any) -> dict[str, Any]:
        """The values of a filled row: its key, its time in the event-time column, the others by ``of``."""
        own = {name: of(name) if self.varies(name) else value for name, value in values.items()}
        if self.time in own:
            own[self.time] = as_in(own[self.time], at)
        return own

    def pane(
        self,
        values: Mapping[str, Any],
        time_us: int,
        *,
        filled: bool,
        kind: PaneKind = PaneKind.PANE,
    ) -> Pane:
        key = {name: values.get(name) for name in self.keys if name != "timestamp"}
        own = {name: value for name, value in values.items() if name not in key} | {"filled": filled}
        last = not (filled and self.lateness_us)
        return Pane(key, None, own, is_first=True, is_last=last, timestamp=moment(time_us), kind=kind)

    def dropped(self, one: Arrival, reason: DropReason) -> Iterator[Pane]:
        if self.stage.with_dropped:
            key = {name: one.values.get(name) for name in self.keys if name != "timestamp"}
            late = late_by(one.time_us, reason, self.now)
            yield Pane(key, None, dict(one.values), kind=PaneKind.DROPPED, reason=reason, late_by_us=late)


def as_in(given: Any, us: int) -> Any:
    """A time as the event times of rows are given."""
    if isinstance(given, datetime):
        return instant(us)
    if isinstance(given, int):
        return None if us % 1_000_000 else us // 1_000_000
    return us / 1_000_000


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TWIN = GapsTwin
