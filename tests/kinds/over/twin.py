"""Values over the rows around a row (rules/over.md): all rows ever taken, in a list per key, from which everything is computed anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import attrs

import beamish as bm
from beamish import DropReason, Pane, PaneKind, PaneTiming
from beamish.flow import Flow
from beamish.kinds.over.options import OverFunction
from beamish.kinds.over.stage import OverStage
from beamish.script import Step
from beamish.windows.option import END_OF_TIME_US
from tests.kinds.refine.strategy import Shown
from tests.kinds.versions.twin import Arrival, Side, is_past, late_by, name_of
from tests.twin import accumulations
from tests.twin.moments import moment
from tests.twin.order import same, spark_order
from tests.twin.run import NO_WATERMARK


@dataclass(eq=False)
class Row:
    """A row that was taken.

    Attributes:
        came: the input row.
        late: its time was passed when it arrived.
        live: its emitted, not retracted output.
        frame: the rows in its frame when it was emitted.
        number: the order in which equal rows were emitted.
    """

    came: Arrival
    time_us: int
    late: bool
    live: Pane | None = None
    frame: list[Row] = field(default_factory=list)
    panes: int = 0
    panes_not_early: int = 0
    number: int = 0

    @property
    def columns(self) -> Any:
        window = self.came.window
        bounds = () if window is None or window.start is None else window[::-1]
        return [spark_order(value) for value in self.came.values.values()], bounds

    def equals(self, other: Row) -> bool:
        ours, theirs = ((row.time_us, row.came.values, row.came.window) for row in (self, other))
        return all(map(same, ours, theirs))


class OverTwin:
    """A stage that gives rows values over others."""

    def __init__(self, flow: Flow) -> None:
        self.say(flow)
        self.side = Side(flow.inputs[0], flow.takes[0])
        self.keys = flow.takes[0].keys
        self.hidden = {"timestamp"} if flow.takes[0].event_time == "timestamp" else set()
        self.columns: list[str] = []
        """The output columns, in order."""
        self.rows: dict[Any, list[Row]] = {}
        self.w: float = NO_WATERMARK
        self.clock = self.emissions = 0

    def say(self, flow: Flow) -> None:
        assert isinstance(flow.stage, OverStage)
        self.options, self.final = flow.stage.options, flow.stage.is_final
        self.lateness_us = self.options.allowed_lateness.us
        leads = [one.n for one in self.options.accumulations.values() if isinstance(one, bm.Lead)]
        self.lead = max(leads, default=0)
        early = getattr(self.options.trigger, "early", None)
        self.early = early is not None

    def change_stage(self, flow: Flow) -> None:
        """The next run has other options (rules/over.md#over-restart)."""
        self.say(flow)

    @property
    def retracts(self) -> bool:
        return self.options.mode is bm.AccumulationMode.ACCUMULATING_AND_RETRACTING

    @property
    def watermark(self) -> float:
        return self.w

    def step(self, step: Step) -> list[Pane]:
        """Panes of a stage; then the watermark; then rows of a source (rules/over.md#over-steps)."""
        self.dropped: list[Pane] = []
        self.side.step(step, self.clock)
        out = self.take(self.side.panes)
        self.w = max(self.w, self.side.watermark)
        out += in_order([*self.emit_due(self.rows), *self.forget()])
        self.clock = self.clock if step.clock_us is None else step.clock_us
        out += self.take(self.side.rows)
        return Shown(self.options.having, self.options.derived, self.options.explode).of([*self.dropped, *out])

    def forget(self) -> Iterator[tuple[Any, Pane]]:
        """Keys without a row for a span start again; those that wait for a row after them are emitted (rules/over.md#over-state)."""
        after = self.options.forget_after
        for name, rows in list(self.rows.items()):
            if after is None or not rows or max(row.time_us for row in rows) + after.us > self.w:
                continue
            yield from self.emit_due([name], ends=True)
            del self.rows[name]

    # Rows arrive

    def take(self, arrivals: Sequence[Arrival]) -> list[Pane]:
        came: list[Row] = []
        removed: list[Row] = []
        for one in arrivals:
            if reason := one.no_time() or self.too_late(one):
                self.drop(one, reason)
                continue
            assert one.time_us is not None
            self.columns = [*(name for name in one.values if name not in self.hidden), *self.options.accumulations]
            (removed if one.removes else came).append(Row(one, one.time_us, self.passed(one.time_us)))
        removed = [row for row in removed if not cancelled(row, came)]
        out: list[tuple[Any, Pane]] = []
        touched: dict[Any, None] = {}
        for row in removed:
            own = self.rows.get(self.name(row), [])
            equal = [one for one in own if one.equals(row)]
            if equal:
                gone = min(equal, key=lambda one: (one.panes, one.panes_not_early, one.number))
                own.remove(gone)
                out += [(self.place(gone), pane) for pane in taken_back(gone)]
                touched[self.name(gone)] = None
        for row in came:
            self.rows.setdefault(self.name(row), []).append(row)
            touched[self.name(row)] = None
        return [*in_order(out), *in_order([*self.correct(touched), *self.emit_due(touched)])]

    def too_late(self, one: Arrival) -> DropReason | None:
        assert one.time_us is not None
        return DropReason.EXPIRED if is_past(one.time_us, self.lateness_us, self.w) else None

    def name(self, row: Row) -> Any:
        return name_of(self.side.key_of(row.came.values))

    def passed(self, time_us: int) -> bool:
        return is_past(time_us, 0, self.w)

    # The order (rules/over.md#over)

    def place(self, row: Row) -> Any:
        by = self.options.order_by
        return (row.time_us, *([spark_order(row.came.values.get(by))] if by else []), row.columns)

    def in_its_order(self, name: Any) -> list[Row]:
        rows = self.rows.get(name, [])
        return sorted(rows, key=lambda row: (self.place(row), row.panes == 0, row.number, row.late))

    def frame_of(self, row: Row, rows: Sequence[Row]) -> list[Row]:
        match self.options.frame:
            case bm.Preceding(span=span):
                return [one for one in rows if row.time_us - span.us <= one.time_us <= row.time_us]
            case bm.PrecedingRows(count=count):
                at = rows.index(row)
                return list(rows[max(0, at - count) : at + 1])
            case _:
                return [one for one in rows if one.time_us <= row.time_us]

    def value(self, function: OverFunction, row: Row, rows: Sequence[Row]) -> Any:
        at, frame = rows.index(row), self.frame_of(row, rows)
        peers_of = {id(one): self.place(one)[:-1] for one in rows}
        match function:
            case bm.FirstValue(column=column):
                return frame[0].came.values.get(column)
            case bm.LastValue(column=column):
                return frame[-1].came.values.get(column)
            case bm.Lag(column=column, n=n):
                return rows[at - n].came.values.get(column) if at >= n else function.default
            case bm.Lead(column=column, n=n):
                return rows[at + n].came.values.get(column) if at + n < len(rows) else function.default
            case bm.RowNumber():
                return at + 1
            case bm.Rank():
                return 1 + sum(peers_of[id(one)] < peers_of[id(row)] for one in rows)
            case _:
                before = {repr(peers_of[id(one)]) for one in rows if peers_of[id(one)] < peers_of[id(row)]}
                return 1 + len(before)

    def values(self, row: Row, rows: Sequence[Row]) -> dict[str, Any]:
        frame = [
            accumulations.Row(0, one.time_us, one.came.values, before_end=True) for one in self.frame_of(row, rows)
        ]
        return {
            name: self.value(one, row, rows) if isinstance(one, OverFunction) else accumulations.value_of(one, frame)
            for name, one in self.options.accumulations.items()
        }

    # Rows are emitted (rules/over.md#over-steps)

    def is_due(self, row: Row, rows: Sequence[Row]) -> bool:
        if not self.passed(row.time_us):
            return False
        at = rows.index(row) + self.lead
        return self.w >= END_OF_TIME_US or (at < len(rows) and self.passed(rows[at].time_us))

    def emit_due(self, names: Iterable[Any], *, ends: bool = False) -> Iterator[tuple[Any, Pane]]:
        for name in list(names):
            rows = self.in_its_order(name)
            for row in rows:
                if not row.panes and (self.early or ends or self.is_due(row, rows)):
                    late = PaneTiming.LATE if row.late else PaneTiming.ON_TIME
                    timing = late if self.passed(row.time_us) else PaneTiming.EARLY
                    pane = self.give(row, rows, timing)
                    yield self.place(row), attrs.evolve(pane, is_last=pane.is_last or ends)

    def correct(self, names: Iterable[Any]) -> Iterator[tuple[Any, Pane]]:
        """rules/over.md#over-modes."""
        for name in names:
            rows = self.in_its_order(name)
            for row in rows:
                if row.live is not None and self.retracts and self.is_wrong(row, row.live, rows):
                    for pane in taken_back(row):
                        yield self.place(row), pane
                    timing = PaneTiming.LATE if self.passed(row.time_us) else PaneTiming.EARLY
                    yield self.place(row), self.give(row, rows, timing)

    def is_wrong(self, row: Row, live: Pane, rows: Sequence[Row]) -> bool:
        functions = {n: one for n, one in self.options.accumulations.items() if isinstance(one, OverFunction)}
        if len(functions) < len(self.options.accumulations):
            then, now = ({id(one) for one in frame} for frame in (row.frame, self.frame_of(row, rows)))
            if then != now:
                return True
        return any(not same(live.values[n], self.value(one, row, rows)) for n, one in functions.items())

    def give(self, row: Row, rows: Sequence[Row], timing: PaneTiming) -> Pane:
        early = timing is PaneTiming.EARLY
        key = dict(zip(self.keys, self.side.key_of(row.came.values), strict=True))
        own = {n: value for n, value in row.came.values.items() if n not in self.hidden and n not in key}
        row.frame = self.frame_of(row, rows)
        row.live = Pane(
            key=key,
            window=row.came.window,
            values={**own, **self.values(row, rows)},
            timing=timing,
            index=row.panes,
            on_time_index=-1 if early else row.panes_not_early,
            is_first=row.panes == 0,
            is_last=self.is_last(row, rows),
            timestamp=moment(row.time_us),
        )
        if not row.panes:
            self.emissions += 1
            row.number = self.emissions
        row.panes += 1
        row.panes_not_early += not early
        return row.live

    def is_last(self, row: Row, rows: Sequence[Row]) -> bool:
        if not self.retracts or self.w >= END_OF_TIME_US:
            return True
        at = rows.index(row) + self.lead
        return at < len(rows) and is_past(rows[at].time_us, self.lateness_us, self.w)

    def drop(self, one: Arrival, reason: DropReason) -> None:
        if self.options.with_dropped:
            key = dict(zip(self.keys, self.side.key_of(one.values), strict=True))
            late = late_by(one.time_us, reason, self.w)
            self.dropped.append(
                Pane(key, None, dict(one.values), kind=PaneKind.DROPPED, reason=reason, late_by_us=late)
            )


def cancelled(removal: Row, came: list[Row]) -> bool:
    """A removal and an equal row of its bundle cancel."""
    for row in came:
        if row.equals(removal):
            came[:] = [one for one in came if one is not row]
            return True
    return False


def taken_back(row: Row) -> Iterator[Pane]:
    """Retract its output, if any."""
    if row.live is not None:
        yield attrs.evolve(row.live, kind=PaneKind.RETRACTION)
        row.live = None


def in_order(placed: Iterable[tuple[Any, Pane]]) -> list[Pane]:
    """By time, then in the order of rows."""
    return [pane for _, pane in sorted(placed, key=lambda one: one[0])]


TWIN = OverTwin
