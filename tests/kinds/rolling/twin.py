"""Rolling spans (rules/rolling.md), boundary by boundary: the value of a span is that of the list of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import attrs

import beamish as bm
from beamish import DropReason, Pane, PaneChange, PaneKind, PaneTiming
from beamish.flow import Flow
from beamish.instants import LATEST_US
from tests.kinds.versions.twin import late_by
from tests.twin.accumulations import Row
from tests.twin.forms import unmatched
from tests.twin.moments import moment
from tests.twin.order import same
from tests.twin.run import NO_WATERMARK, Key, Twin, out_of_range, removes

State = Mapping[str, Any] | None
"""The values of a key at a boundary; None: it has no rows there."""


@dataclass
class Slot:
    """The row of a key, or of a key and boundary.

    Attributes:
        pane: the last one.
        time_us: its boundary.
        state: the values there.
        panes, later: how many panes there were, and how many not EARLY.
        live: whether the last one is neither retracted nor removed.
    """

    pane: Pane
    time_us: int
    state: State
    panes: int
    later: int
    live: bool


@dataclass
class Rolled:
    """A key.

    Attributes:
        rows: its rows and removals of rows, each with the watermark at which it arrived.
        at: the values at the boundaries that the watermark has reached, as they are known.
        slots: its rows of output, by boundary; with one row per key at 0.
    """

    rows: list[tuple[Row, float]] = field(default_factory=list)
    at: dict[int, State] = field(default_factory=dict)
    slots: dict[int, Slot] = field(default_factory=dict)


def net(rows: Sequence[Row]) -> list[Row]:
    """Rows without those that are removed by others (rules/stages.md#retractions-as-rows)."""
    left: list[Row] = []
    for row in rows:
        if not removes(row):
            left.append(row)
            continue
        for i, one in enumerate(left):
            equal = all(same(one.values.get(name), value) for name, value in row.values.items())
            if one.time_us == row.time_us and one.input == row.input and equal:
                del left[i]
                break
    return left


def differ(one: State, other: State) -> bool:
    return one is not other and (one is None or other is None or not same(dict(one), dict(other)))


class RollingTwin(Twin):
    """A stage of rolling spans."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        assert isinstance(self.window, bm.Rolling)
        self.rolling = self.window
        self.step_us = self.window.step.us
        self.history = self.window.keep == "history"
        self.early = isinstance(self.options.trigger, bm.triggers.AfterWatermark) and bool(self.options.trigger.early)
        self.is_endless = self.window.has_lifetime
        self.forget_us = None if self.options.forget_after is None else self.options.forget_after.us
        self.rolled: dict[int, Rolled] = {}

    def of(self, key: Key) -> Rolled:
        return self.rolled.setdefault(id(key), Rolled())

    # Idle keys (rules/rolling.md#rolling-lifetime)

    def ends(self, key: Key) -> float:
        """The boundary from which on a key is not present, for want of rows."""
        rows = self.of(key).rows
        if self.forget_us is None or not rows:
            return float("inf")
        return max(self.slice_of(row) for row, _ in rows) + self.forget_us + self.step_us

    def forget_keys(self) -> None:
        for key in self.keys.values():
            if not self.is_open(self.ends(key), self.watermark):
                self.rolled[id(key)] = Rolled()

    # Boundaries (rules/rolling.md#rolling)

    def reached(self, watermark: float) -> int:
        """The last boundary that a watermark has reached."""
        last = int(min(watermark, LATEST_US))
        return last - (last - self.rolling.offset.us) % self.step_us

    def boundaries(self, since: float, until: float, rows: Sequence[tuple[Row, float]]) -> Iterator[int]:
        """Those after ``since`` until ``until`` at which rows count or have just left, in order."""
        if not rows or until == NO_WATERMARK:
            return
        first = min(row.time_us for row, _ in rows)
        reach = max(self.rolling.reach_us, self.forget_us or 0)
        last = max(max(row.time_us + reach, came) for row, came in rows) + 2 * self.step_us
        boundary = self.reached(max(since, first)) + self.step_us
        while boundary <= min(until, last, LATEST_US):
            yield boundary
            boundary += self.step_us

    def next(self, watermark: float) -> int | None:
        """The first boundary past a watermark."""
        if watermark == NO_WATERMARK or watermark >= LATEST_US:
            return None
        return self.reached(watermark) + self.step_us

    def is_open(self, boundary: float, watermark: float) -> bool:
        """May its values still change?"""
        return boundary + self.lateness > watermark

    def state(self, key: Key, boundary: int) -> State:
        """The values of a key at a boundary, of the rows that came while they could change it."""
        rows = net([row for row, came in self.of(key).rows if self.is_open(boundary, came)])
        reach = float("-inf") if self.is_endless else boundary - self.rolling.reach_us
        if boundary >= self.ends(key) or not any(reach <= row.time_us < boundary for row in rows):
            return None
        return self.values_at(rows, boundary)

    def values_at(self, rows: Sequence[Row], boundary: int) -> dict[str, Any]:
        values = {}
        for name in self.options.accumulations:
            for span, of in self.rolling.spans.items():
                if of.only is not None and name not in of.only:
                    continue
                end = boundary - of.offset.us
                start = end - of.length.us if isinstance(of, bm.Span) else float("-inf")
                inside = [row for row in rows if start <= row.time_us < end]
                values[f"{name}_{span}"] = self.value_of(name, inside)
        return values

    # Steps

    def move_watermark(self, to: float) -> None:
        """Boundary after boundary, key by key."""
        before, self.watermark = self.watermark, max(self.watermark, to)
        if self.watermark == before:
            return
        found = [
            (boundary, key)
            for key in self.keys.values()
            for boundary in self.boundaries(before, self.watermark, self.of(key).rows)
        ]
        for boundary, key in sorted(found, key=lambda one: one[0]):
            self.of(key).at[boundary] = self.state(key, boundary)
            self.settle(key, boundary, PaneTiming.ON_TIME, boundary)
        coming = self.next(self.watermark)
        if self.early and coming is not None and coming != self.next(before):
            for key in self.keys.values():
                if any(self.enters(row, coming) for row in net([row for row, _ in self.of(key).rows])):
                    self.settle(key, coming, PaneTiming.EARLY, self.watermark)
        self.forget_keys()

    def enters(self, row: Row, boundary: int) -> bool:
        """Does a row count at a boundary, and not at the one before, in a span or at all?"""
        ends = {0, *(span.offset.us for span in self.rolling.spans.values())}
        return any(boundary - self.step_us - end <= row.time_us < boundary - end for end in ends)

    def put(
        self,
        key: Key,
        name: Any,
        row: Row,
        arrived: dict[Any, list[Any]],
        own: Any = None,
    ) -> None:
        if out_of_range(row.time_us):
            self.drop(key, None, DropReason.EVENT_TIME_OUT_OF_RANGE, row)
            return
        makes_present = self.forget_us if self.is_endless else self.rolling.reach_us
        last = LATEST_US if makes_present is None else self.slice_of(row) + makes_present
        if not self.is_open(last, self.watermark):
            self.drop(key, None, DropReason.EXPIRED, row)
            return
        arrived.setdefault(name, []).append(((0, 1), row))

    def add_to_key(self, key: Key, pairs: Sequence[tuple[Any, Row]]) -> None:
        of = self.of(key)
        new = self.matched_by_slice(key, [row for _, row in pairs])
        if not new:
            return
        of.rows += [(row, self.watermark) for row in new]
        if self.watermark == NO_WATERMARK:
            return
        for boundary in self.boundaries(NO_WATERMARK, self.watermark, of.rows):
            if self.is_open(boundary, self.watermark):
                of.at[boundary] = self.state(key, boundary)
                if self.history:
                    self.settle(key, boundary, PaneTiming.LATE, self.watermark)
        last, coming = self.reached(self.watermark), self.next(self.watermark)
        early = of.slots.get(0)
        is_ahead = early is not None and early.time_us > last
        if not self.history and self.is_open(last, self.watermark) and not is_ahead:
            self.settle(key, last, PaneTiming.LATE, self.watermark)
        if coming is None:
            return
        reach = float("inf") if self.is_endless else self.rolling.reach_us
        counts = any(row.time_us < coming <= row.time_us + reach for row in new)
        if (self.early and counts) or (self.history and coming in of.slots):
            self.settle(key, coming, PaneTiming.EARLY, self.watermark)

    def slice_of(self, row: Row) -> int:
        """The start of the step that a row is in."""
        return row.time_us - (row.time_us - self.rolling.offset.us) % self.step_us

    def folded(self, row: Row) -> float:
        """The start of its slice; slices that have left all spans with a beginning, and the lateness, are one."""
        start = self.slice_of(row)
        enters = start + self.step_us + self.rolling.reach_us
        return float("-inf") if self.is_endless and not self.is_open(enters, self.watermark) else start

    def matched_by_slice(self, key: Key, rows: Sequence[Row]) -> list[Row]:
        """Without removals of rows that their slices do not hold (rules/changelogs.md#unmatched-removals)."""
        if not self.signed:
            return list(rows)
        lost: list[Row] = []
        held = net([row for row, _ in self.of(key).rows])
        for start in dict.fromkeys(map(self.folded, rows)):
            own, before = ([row for row in some if self.folded(row) == start] for some in (rows, held))
            added = [row for row in own if not removes(row)]
            lost += unmatched(self.options, before, added, [row for row in own if removes(row)])
        for row in lost:
            self.drop(key, None, DropReason.UNMATCHED_REMOVAL, row)
        return [row for row in rows if not any(row is one for one in lost)]

    # Rows of output

    def settle(self, key: Key, boundary: int, timing: PaneTiming, now: float) -> None:
        """Emit what the values at a boundary change."""
        state = self.state(key, boundary)
        if self.history:
            self.settle_history(key, boundary, state, timing)
        else:
            self.settle_current(key, boundary, state, timing, now)

    def settle_current(self, key: Key, boundary: int, state: State, timing: PaneTiming, now: float) -> None:
        slots = self.of(key).slots
        slot = slots.get(0)
        if slot is not None and slot.state is None and not self.is_open(slot.time_us, now):
            slot = None  # it has expired
        if not differ(state, None if slot is None else slot.state):
            return
        removes = state is None and self.rolling.empty == "remove"
        back = slot.pane if slot is not None and slot.live and self.options.retracts else None
        if removes:
            assert slot is not None
            assert back is not None
            self.back(back, PaneChange.DELETE)
            slots[0] = attrs_of(slot, time_us=boundary, state=None, live=False)
            return
        slots[0] = self.emit_row(key, boundary, state, timing, slot, back)

    def settle_history(self, key: Key, boundary: int, state: State, timing: PaneTiming) -> None:
        of = self.of(key)
        slot = of.slots.get(boundary)
        live = slot is not None and slot.live
        before = max((at for at in of.at if at < boundary), default=None)
        if differ(state, None if before is None else of.at[before]):
            if slot is not None and live and not differ(state, slot.state):
                return
            back = slot.pane if slot is not None and live and self.options.retracts else None
            of.slots[boundary] = self.emit_row(key, boundary, state, timing, slot, back)
        elif slot is not None and live and self.options.retracts:
            self.back(slot.pane, PaneChange.DELETE)
            slot.live = False
        elif slot is not None and live and differ(state, slot.state):
            of.slots[boundary] = self.emit_row(key, boundary, state, timing, slot, None)

    def emit_row(  # noqa: PLR0917
        self, key: Key, boundary: int, state: State, timing: PaneTiming, slot: Slot | None, back: Pane | None
    ) -> Slot:
        """A pane, after the retraction of the one that it replaces."""
        index, later = (slot.panes, slot.later) if slot is not None else (0, 0)
        if back is not None:
            self.back(back, PaneChange.UPDATE_BEFORE)
        values = dict(self.values_at([], boundary) if state is None else state)
        time = {"time": moment(boundary)}
        replaces = back is not None if self.options.retracts else index > 0
        pane = Pane(
            key=dict(key.columns) | (time if self.history else {}),
            window=None,
            values=values if self.history else time | values,
            timing=timing,
            index=index,
            on_time_index=-1 if timing is PaneTiming.EARLY else later,
            is_first=index == 0,
            is_last=state is None,
            timestamp=moment(boundary),
            change=PaneChange.UPDATE_AFTER if replaces else PaneChange.INSERT,
        )
        self.out.append(pane)
        return Slot(pane, boundary, state, index + 1, later + (timing is not PaneTiming.EARLY), live=True)

    def back(self, pane: Pane, change: PaneChange) -> None:
        self.out.append(attrs.evolve(pane, kind=PaneKind.RETRACTION, change=change))

    def drop(self, key: Key, bounds: Any, reason: DropReason, row: Row) -> None:
        if self.options.with_dropped:
            late = late_by(row.time_us, reason, self.watermark)
            of = dict(key.columns) | ({"time": None} if self.history else {})
            self.out.append(Pane(of, None, self.as_dropped(row), kind=PaneKind.DROPPED, reason=reason, late_by_us=late))


def attrs_of(slot: Slot, **changes: Any) -> Slot:
    """A slot with other attributes."""
    return Slot(**{**vars(slot), **changes})


TWIN = RollingTwin
