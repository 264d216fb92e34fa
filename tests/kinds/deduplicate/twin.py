"""A stage of deduplication only (rules/output.md#duplicates-of-rows)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from beamish import DropReason, Pane, PaneKind
from beamish.flow import Flow
from beamish.script import Step
from tests.declared_options import said
from tests.kinds.deduplicate.twin_ids import FirstCome, id_of, remember
from tests.kinds.versions.twin import Arrival, Side, late_by
from tests.twin.moments import moment
from tests.twin.run import NO_WATERMARK


class OnceTwin:
    """Such a stage."""

    def __init__(self, flow: Flow) -> None:
        options = said(flow)
        assert options.deduplication is not None
        assert options.deduplication.within is not None
        self.once, self.within_us = options.deduplication, options.deduplication.within.us
        self.with_dropped = options.with_dropped
        self.side = Side(flow.inputs[0], flow.takes[0])
        self.keys = [name for name in flow.takes[0].keys or self.once.columns if name != "timestamp"]
        self.known_by = [*flow.takes[0].keys, *self.once.columns]
        self.hidden = "timestamp" if flow.takes[0].event_time == "timestamp" else None
        self.remembered: list[tuple[Any, int]] = []
        self.watermark: float = NO_WATERMARK
        self.clock = 0

    def step(self, step: Step) -> list[Pane]:
        """Panes of the stage before, then the watermark, then rows of a source."""
        self.side.step(step, self.clock)
        out = dropped_first(self.take(self.side.panes))
        self.watermark = max(self.watermark, self.side.watermark)
        if step.clock_us is not None:
            self.clock = step.clock_us
        return out + dropped_first(self.take(self.side.rows))

    def take(self, arrivals: Sequence[Arrival]) -> Iterator[Pane]:
        """A bundle of rows."""
        timed = []
        for one in arrivals:
            reason = one.no_time()
            if reason is None:
                timed.append(one)
            else:
                yield from self.dropped(one, reason)
        first = FirstCome([None], [one.values for one in arrivals])
        for one in sorted(timed, key=lambda one: first.place(one.time_us or 0, one.values)):
            id_ = id_of(self.known_by, one.values)
            reason = remember(self.remembered, id_, one.time_us or 0, self.within_us, self.watermark)
            if reason is None:
                yield self.row(one)
            else:
                yield from self.dropped(one, reason)

    def row(self, one: Arrival) -> Pane:
        key, values = self.key_and_values(one.values)
        return Pane(key, None, values, is_first=True, is_last=True, timestamp=moment(one.time_us or 0))

    def key_and_values(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        key = {name: values.get(name) for name in self.keys}
        return key, {name: value for name, value in values.items() if name not in key and name != self.hidden}

    def dropped(self, one: Arrival, reason: DropReason) -> Iterator[Pane]:
        if self.with_dropped:
            by_time = reason in (DropReason.DUPLICATE, DropReason.OUT_OF_RETENTION)
            late = late_by(one.time_us, DropReason.EXPIRED, self.watermark) if by_time else None
            key, _ = self.key_and_values(one.values)
            yield Pane(key, None, dict(one.values), kind=PaneKind.DROPPED, reason=reason, late_by_us=late)


def dropped_first(panes: Iterator[Pane]) -> list[Pane]:
    """The output of a bundle in its order (rules/output.md#order-of-output)."""
    return sorted(panes, key=lambda pane: pane.kind is not PaneKind.DROPPED)


TWIN = OnceTwin
