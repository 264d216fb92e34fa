"""Chained stages (RULES 30, 31): a twin that takes the panes of the stage before as its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

import beamish as bm
from beamish import DropReason, Pane, PaneKind, PaneTiming
from beamish.instants import instant
from beamish.options import Options
from beamish.script.events import ClockTo, Event
from beamish.windows.inherited import InheritedWindows
from tests.twin.accumulations import Row
from tests.twin.order import normal, same
from tests.twin.run import NO_TIME_US, Key, Live, Twin, out_of_range
from tests.twin.windows import Bounds, assign

US = 1_000_000


def run_chain(stages: Sequence[Options], events: Sequence[Event]) -> list[Pane]:
    """The panes of the last stage."""
    return list(run_twins(stages, events)[-1].out)


def run_twins(
    stages: Sequence[Options], events: Sequence[Event], later: type[LaterTwin] | None = None
) -> Sequence[Twin]:
    """The twins of all stages, after a script; ``later``: what the later ones are."""
    first, *rest = stages
    twins: list[Any] = [Twin(first)]
    for options in rest:
        before = twins[-1].options
        own = attrs.evolve(
            options, watermark=before.watermark, window=options.window or InheritedWindows(before.window)
        )
        twins.append((later or LaterTwin)(own, before))
    for event in events:
        seen = len(twins[0].out)
        twins[0].step(event)
        panes = twins[0].out[seen:]
        for twin in twins[1:]:
            seen = len(twin.out)
            twin.take(event, panes)
            panes = twin.out[seen:]
    return twins


class Signed(dict[str, Any]):
    """The values of a row, and whether it removes an equal one."""

    def __init__(self, values: Mapping[str, Any], removes: bool) -> None:
        super().__init__(values)
        self.removes = removes


class Later(Live):
    def add(self, rows: Any, watermark: float) -> None:
        """R counts as a row, and takes an equal one away."""
        for row in rows:
            super().add([row], watermark)
            if row.values.removes:
                self.rows.pop()
                equal = [
                    i for i, one in enumerate(self.rows) if one.time_us == row.time_us and same(one.values, row.values)
                ]
                if equal:
                    del self.rows[equal[0]]


class LaterTwin(Twin):
    live = Later

    def __init__(self, options: Options, before: Options) -> None:
        super().__init__(options)
        self.signed = before.retracts
        self.inherits = isinstance(options.window, InheritedWindows)

    def take(self, event: Event, panes: Sequence[Pane]) -> None:
        """RULES 30: the rows of a step first, all in one bundle, then W, then the clock."""
        self.watermark_before_step = self.watermark
        self.add_panes([pane for pane in panes if pane.kind is not PaneKind.DROPPED])
        self.watermark_before_step = self.watermark
        self.move_watermark(min(follower.next(event, self.clock) for follower in self.followers))
        self.watermark_before_step = self.watermark
        if isinstance(event, ClockTo):
            self.move_clock(event.us)

    def add_panes(self, panes: Sequence[Pane]) -> None:
        self.bundles += 1
        arrived: dict[Any, list[tuple[Bounds, Row]]] = {}
        for pane in panes:
            values = {**pane.key, **pane.values}
            columns = {column: normal(values.get(column)) for column in self.options.keys}
            name = tuple(map(repr, columns.values()))
            key = self.keys.setdefault(name, Key(columns))
            bounds = None if pane.window is None or pane.window.start is None else tuple(map(us, pane.window))
            time = us(pane.timestamp) if pane.timestamp is not None else None
            if time is None and self.inherits:
                time = NO_TIME_US
            row = Row(self.bundles, time or 0, Signed(values, pane.kind is PaneKind.RETRACTION), False, None)  # noqa: FBT003
            if time is None:
                self.drop(key, None, DropReason.NULL_EVENT_TIME, row)
                continue
            if not self.inherits and out_of_range(time):
                self.drop(key, None, DropReason.EVENT_TIME_OUT_OF_RANGE, row)
                continue
            windows = [bounds or (0, 2**63 - 1)] if self.inherits else assign(self.window, time, values)
            for own in windows:
                if self.expired(own):
                    self.drop(key, own, DropReason.EXPIRED, row)
                else:
                    arrived.setdefault(name, []).append((own, row))
        for name, pairs in arrived.items():
            # The engine and Spark do not say in which order a bundle's rows come: removals after what they remove.
            self.add_to_key(self.keys[name], sorted(pairs, key=lambda pair: pair[1].values.removes))

    def emit(self, key: Key, window: Live, *, is_last: bool) -> None:
        """RULES 31: a pane of a window with no rows left is not emitted, its live pane is retracted all the same."""
        timing = self.timing(window)
        gives_pane = (
            bool(window.new)
            or (timing is PaneTiming.ON_TIME and self.options.on_time is bm.OnTimeBehavior.FIRE_ALWAYS)
            or (is_last and self.options.closing is bm.ClosingBehavior.FIRE_ALWAYS)
        )
        if not self.signed or window.rows or not gives_pane:
            super().emit(key, window, is_last=is_last)
            return
        if self.options.retracts and window.last:
            self.retract([window.last])
        window.last = None
        window.new, window.new_since = [], None

    def as_dropped(self, row: Row) -> dict[str, Any]:
        return dict(row.values)

    def timestamp(self, window: Live) -> Any:
        if self.inherits and window.end == 2**63 - 1:
            combine = {bm.TimestampCombiner.EARLIEST: min, bm.TimestampCombiner.LATEST: max}.get(self.options.combiner)
            times = [row.time_us for row in window.new if row.before_end]
            found = combine(times) if combine and times else NO_TIME_US
            return None if found == NO_TIME_US else instant(found)
        return super().timestamp(window)

    def bounds_of(self, bounds: Bounds) -> bm.Window:
        if self.inherits and bounds[1] == 2**63 - 1:
            return bm.Window(None, None)
        return super().bounds_of(bounds)


def us(time: Any) -> int:
    return round((time - bm.instants.EPOCH).total_seconds() * US)
