"""Upserts and deletes of a table (rules/suppress.md#changes)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import beamish as bm
from beamish import DropReason, Pane, PaneKind, Window
from beamish.flow import Flow
from beamish.kinds.suppress.stage import Suppressed
from beamish.script import Step
from beamish.windows.option import END_OF_TIME_US
from tests.declared_options import said
from tests.kinds.suppress.twin_held import Holding, Slot
from tests.twin.moments import moment, moment_us
from tests.twin.order import normal, spark_order
from tests.twin.run import NO_WATERMARK, Follower, out_of_range
from tests.twin.windows import Bounds

NO_WINDOW: Bounds = (0, END_OF_TIME_US)


@dataclass
class Change:
    """A row that sets a slot, or deletes it.

    Attributes:
        step: the number of its step.
        sequence: its order.
    """

    step: int
    time_us: int
    key: Mapping[str, Any]
    window: Window | None
    sequence: Any
    deletes: bool
    values: Mapping[str, Any]

    @property
    def age(self) -> Any:
        """The greatest is the newest (rules/suppress.md#changes-newest)."""
        return spark_order(self.sequence), self.step, not self.deletes, self.in_order, self.time_us

    @property
    def passing(self) -> Any:
        """The order in which it passes at a zero wait."""
        return self.time_us, spark_order(self.sequence), not self.deletes, self.in_order

    @property
    def in_order(self) -> Any:
        return [spark_order(value) for value in self.values.values()]

    @property
    def bounds(self) -> Bounds:
        if self.window is None:
            return NO_WINDOW
        return moment_us(self.window.start), moment_us(self.window.end)

    @property
    def row(self) -> Pane:
        return Pane(
            key=self.key,
            window=self.window,
            values=self.values,
            kind=PaneKind.RETRACTION if self.deletes else PaneKind.PANE,
            is_first=True,
            timestamp=moment(self.time_us),
        )


@dataclass
class ChangeSlot(Slot):
    """A slot of the table, and its newest row."""

    newest: Change = field(kw_only=True)
    closes: bool = field(kw_only=True)

    @property
    def is_empty(self) -> bool:
        return False

    @property
    def place(self) -> tuple[float, float]:
        """Slots without a window come first, like nulls."""
        return (NO_WATERMARK, NO_WATERMARK) if self.newest.window is None else super().place

    def take(self, change: Change) -> None:
        if not self.before:  # rules/suppress.md#changes-since: of the rows of its first step, the least
            self.since = change.time_us if self.since is None else min(self.since, change.time_us)
        self.newest = max(self.newest, change, key=lambda one: one.age)

    def contents(self) -> list[Pane]:
        return [self.newest.row]

    def leaving(self) -> list[Pane]:
        """For a window that closes one row; for a deleted slot none."""
        return [] if self.closes and self.newest.deletes else self.contents()


class ChangesTwin:
    """A stage of changes and its suppress."""

    def __init__(self, flow: Flow) -> None:
        assert isinstance(flow.stage, Suppressed)
        options = said(flow)
        assert options.changes is not None
        self.options, self.changes = options, options.changes
        self.follower = Follower(options.watermark)
        self.watermark: float = NO_WATERMARK
        self.clock = 0
        self.steps = 0
        self.dropped: list[Pane] = []
        self.held: Holding[ChangeSlot] = Holding(self.closes)
        self.change(flow.stage.suppress)

    def change(self, suppress: bm.Suppress) -> None:
        """Continue with another suppress (rules/suppress.md#suppress-restart)."""
        self.held.until, self.held.buffer = suppress.until, suppress.buffer
        self.holds = suppress.holds
        self.grace = suppress.until.grace if isinstance(suppress.until, bm.UntilWindowCloses) else None
        for slot in self.held.slots.values():
            slot.closes = self.grace is not None

    def step(self, step: Step) -> list[Pane]:
        """Watermark, clock, rows; then emit due slots."""
        self.steps += 1
        self.dropped = []
        self.watermark = max(self.watermark, self.follower.next(step, self.clock))
        if step.clock_us is not None:
            self.clock = step.clock_us
        changes = list(self.changes_of(step))
        if not self.holds:
            before = self.held.let_go(list(self.held.slots.values()))
            by_key: dict[Any, list[Change]] = {}
            for change in changes:
                by_key.setdefault(name_of(change), []).append(change)
            ordered = [one for of_key in by_key.values() for one in sorted(of_key, key=lambda one: one.passing)]
            return [*before, *self.dropped, *(one.row for one in ordered)]
        for change in changes:
            new = ChangeSlot(change.key, change.bounds, self.clock, newest=change, closes=self.grace is not None)
            self.held.slots.setdefault((name_of(change), change.bounds), new).take(change)
        return self.dropped + self.held.leave(self.watermark, self.clock)

    def changes_of(self, step: Step) -> Iterator[Change]:
        """The rows of a step that are not dropped (rules/suppress.md#changes-dropped)."""
        for row in step.rows:
            key = {name: normal(row.get(name)) for name in self.options.keys}
            time = row.get(self.options.event_time)
            time_us = None if time is None else moment_us(time)
            window = self.window_of(row)
            if time_us is None:
                self.drop(key, None, row, DropReason.NULL_EVENT_TIME, None)
            elif out_of_range(time_us):
                self.drop(key, None, row, DropReason.EVENT_TIME_OUT_OF_RANGE, None)
            else:
                change = Change(
                    self.steps,
                    time_us,
                    key,
                    window,
                    time_us if self.changes.sequence_by is None else row.get(self.changes.sequence_by),
                    self.changes.deleted is not None and row.get(self.changes.deleted) is True,
                    {name: value for name, value in row.items() if name not in self.hidden},
                )
                if self.grace is not None and self.watermark >= self.closes(change.bounds):
                    self.drop(key, window, row, DropReason.EXPIRED, time_us)
                else:
                    yield change

    @property
    def hidden(self) -> set[Any]:
        """Columns that are not values."""
        named = {*self.options.keys, self.changes.deleted, self.changes.window}
        return named | ({"timestamp"} if self.options.event_time == "timestamp" else set())

    def window_of(self, row: Mapping[str, Any]) -> Window | None:
        value = None if self.changes.window is None else row.get(self.changes.window)
        return None if value is None else Window(value["start"], value["end"])

    def closes(self, bounds: Bounds) -> int:
        assert self.grace is not None
        return min(bounds[1] + self.grace.us, END_OF_TIME_US)

    def drop(
        self, key: Any, window: Window | None, row: Mapping[str, Any], reason: DropReason, time_us: int | None
    ) -> None:
        if self.options.with_dropped:
            known = time_us is not None and self.watermark > NO_WATERMARK
            late_by_us = min(int(self.watermark) - time_us, END_OF_TIME_US) if known else None
            self.dropped.append(
                Pane(key, window, dict(row), kind=PaneKind.DROPPED, reason=reason, late_by_us=late_by_us)
            )


def name_of(change: Change) -> Any:
    return tuple(map(repr, change.key.values()))
