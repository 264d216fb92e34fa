"""Upserts by key (rules/upserts.md): a dict of the last row of each key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beamish import DropReason, Pane, PaneKind
from beamish.flow import Flow
from beamish.instants import EARLIEST_US, LATEST_US
from beamish.kinds.upserts.stage import UpsertsStage
from beamish.script import Step
from beamish.windows.option import END_OF_TIME_US
from tests.kinds.deduplicate.twin import dropped_first
from tests.kinds.refine.strategy import Shown
from tests.kinds.versions.twin import Arrival, Side, name_of
from tests.twin.moments import moment
from tests.twin.order import normal, same, spark_order
from tests.twin.run import NO_WATERMARK


@dataclass(frozen=True)
class Image:
    """The last row of a key; one that deletes has no values.

    Attributes:
        order: the greatest is the last.
    """

    key: Mapping[str, Any]
    time_us: int
    order: Any
    deletes: bool
    values: Mapping[str, Any]

    @property
    def weight(self) -> Any:
        """Among rows of one bundle the greatest is the last (rules/upserts.md#upserts-order)."""
        in_order = [spark_order(value) for value in self.values.values()]
        return self.order, not self.deletes, in_order, self.time_us

    def equals(self, other: Image) -> bool:
        return self.time_us == other.time_us and same(dict(self.values), dict(other.values))


class UpsertsTwin:
    """Such a stage."""

    def __init__(self, flow: Flow) -> None:
        assert isinstance(flow.stage, UpsertsStage)
        self.options = flow.stage.options
        self.side = Side(flow.inputs[0], flow.takes[0])
        time = flow.takes[0].event_time
        self.hidden = {*flow.takes[0].keys, self.options.deleted, self.options.sequence_by}
        self.hidden |= {"timestamp"} if time == "timestamp" else set()
        self.images: dict[Any, Image] = {}
        self.watermark: float = NO_WATERMARK
        self.clock = 0

    def step(self, step: Step) -> list[Pane]:
        """Panes of the stage before, then the watermark, then rows of a source."""
        self.side.step(step, self.clock)
        out = dropped_first(self.take(self.side.panes))
        self.watermark = max(self.watermark, self.side.watermark)
        if step.clock_us is not None:
            self.clock = step.clock_us
        self.images = {name: image for name, image in self.images.items() if not self.is_expired(image)}
        out += dropped_first(self.take(self.side.rows))
        return Shown(None, {}, self.options.explode).of(out)

    def is_expired(self, image: Image) -> bool:
        """See rules/upserts.md#upserts-expiry."""
        if image.deletes and image.time_us == EARLIEST_US:
            return False
        spans = [self.options.forget_after, self.options.keep_deleted if image.deletes else None]
        ends = [image.time_us + span.us for span in spans if span is not None]
        return any(end <= self.watermark for end in ends if end < END_OF_TIME_US)

    def take(self, arrivals: Sequence[Arrival]) -> Iterator[Pane]:
        """The rows of a bundle, one after the other in their order; then the changes of each key."""
        before, rows = dict(self.images), []
        for one in arrivals:
            reason = self.refuses(one)
            if reason is None:
                rows.append((one, self.image_of(one)))
            else:
                yield from self.dropped(one, reason)
        changed = []
        for one, image in sorted(rows, key=lambda pair: pair[1].weight):
            name = name_of(list(image.key.values()))
            if name in before and image.order < before[name].order:
                yield from self.dropped(one, DropReason.SUPERSEDED)
                continue
            self.images[name] = image
            changed.append(name)
        for name in dict.fromkeys(changed):
            old, new = before.get(name), self.images[name]
            was, now = old is not None and not old.deletes, not new.deletes
            if old is not None and was and now and old.equals(new):
                continue
            if old is not None and was:
                yield pane(old, PaneKind.RETRACTION)
            if now:
                yield pane(new, PaneKind.PANE)

    def refuses(self, one: Arrival) -> DropReason | None:
        """The drop reason of a row, if any but its age."""
        reason = one.no_time()
        if reason is not None and not (self.deletes(one) and self.options.sequence_by is not None):
            return reason
        return DropReason.NULL_KEY if any(value is None for value in self.side.key_of(one.values)) else None

    def deletes(self, one: Arrival) -> bool:
        return self.options.deleted is not None and one.values.get(self.options.deleted) is True

    def image_of(self, one: Arrival) -> Image:
        """A row as the last one of its key; a delete without event time is at the watermark."""
        time_us = one.time_us
        if time_us is None or one.no_time() is not None:
            time_us = int(min(max(self.watermark, EARLIEST_US), LATEST_US))
        by, deletes = self.options.sequence_by, self.deletes(one)
        key = {name: normal(one.values.get(name)) for name in self.side.relation.keys}
        values = {name: value for name, value in one.values.items() if name not in self.hidden}
        order = spark_order(one.values.get(by)) if by is not None else time_us
        return Image(key, time_us, order, deletes, {} if deletes else values)

    def dropped(self, one: Arrival, reason: DropReason) -> Iterator[Pane]:
        if self.options.with_dropped:
            key = {name: normal(one.values.get(name)) for name in self.side.relation.keys}
            yield Pane(key, None, dict(one.values), kind=PaneKind.DROPPED, reason=reason)


def pane(image: Image, kind: PaneKind) -> Pane:
    return Pane(image.key, None, image.values, kind=kind, is_first=True, timestamp=moment(image.time_us))


TWIN = UpsertsTwin
