"""The buffer of a suppress: since when, due when, and in which order (rules/suppress.md#suppress)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

import beamish as bm
from beamish import Pane
from beamish.windows.option import END_OF_TIME_US
from tests.twin.order import spark_order
from tests.twin.windows import Bounds


@dataclass
class Slot:
    """A (key, window) with buffered updates.

    Attributes:
        since, since_clock: since when, on either clock; None if unknown.
        before: it was buffered before this step.
    """

    key: Mapping[str, Any]
    bounds: Bounds
    since_clock: int
    since: float | None = None
    before: bool = False

    @property
    def is_empty(self) -> bool:
        """Clear it."""
        raise NotImplementedError

    @property
    def waits_for_pane(self) -> bool:
        """It is emitted with its next pane and not before."""
        return False

    @property
    def is_final(self) -> bool:
        """Its last pane has arrived."""
        return False

    @property
    def place(self) -> tuple[float, float]:
        """Its order among the slots of its key: by (end, start)."""
        return self.bounds[1], self.bounds[0]

    def settle(self, watermark: float) -> None:
        """The step has ended."""

    def contents(self) -> list[Pane]:
        """Its updates, in the order of emission."""
        raise NotImplementedError

    def leaving(self) -> list[Pane]:
        """Emit it."""
        return self.contents()


S = TypeVar("S", bound=Slot)


class Holding(Generic[S]):
    """The buffer of a stage."""

    until: bm.UntilWindowCloses | bm.UntilTimeLimit
    buffer: bm.Buffer

    def __init__(self, closes: Callable[[Bounds], int]) -> None:
        self.closes = closes
        self.slots: dict[Any, S] = {}

    def leave(self, watermark: float, clock: int) -> list[Pane]:
        """Emissions at the end of a step (rules/suppress.md#suppress-order, #suppress-limits)."""
        for slot in self.slots.values():
            slot.settle(watermark)
        self.slots = {place: slot for place, slot in self.slots.items() if not slot.is_empty}
        due = [slot for slot in self.slots.values() if self.is_due(slot, watermark, clock)]
        leaving = [*self.let_go(due), *self.let_go(self.too_much())]
        for slot in self.slots.values():
            slot.before = True
        return leaving

    def is_due(self, slot: S, watermark: float, clock: int) -> bool:
        """rules/suppress.md#suppress-due."""
        if watermark >= END_OF_TIME_US:
            return True  # rules/suppress.md#suppress-end-of-time: on either clock
        if isinstance(self.until, bm.UntilWindowCloses):
            return slot.is_final or self.due(slot) <= watermark
        return not slot.waits_for_pane and self.due(slot) <= (clock if self.until.clock == "processing" else watermark)

    def due(self, slot: S) -> float:
        """Its due time; never without a since."""
        if isinstance(self.until, bm.UntilWindowCloses):
            return self.closes(slot.bounds)
        since = slot.since_clock if self.until.clock == "processing" else slot.since
        return float("inf") if since is None else since + self.until.wait.us

    def order(self, slot: S) -> Any:
        """Least due first, then by key, then by (end, start)."""
        return self.due(slot), [spark_order(value) for value in slot.key.values()], slot.place

    def let_go(self, slots: list[S]) -> Iterator[Pane]:
        for slot in sorted(slots, key=self.order):
            yield from slot.leaving()
            self.slots = {place: one for place, one in self.slots.items() if one is not slot}

    def too_much(self) -> list[S]:
        """Early emissions, so that the rest is within the limits (rules/suppress.md#suppress-limits)."""
        kept = sorted(self.slots.values(), key=self.order)
        if self.within_limits(kept) or self.buffer.policy is bm.SPILL:
            return []
        if self.buffer.policy is bm.SHUT_DOWN:
            raise bm.BufferFullError(f"{len(kept)} held")
        early = []
        for slot in [slot for slot in kept if not slot.waits_for_pane]:
            if self.within_limits(kept):
                break
            early.append(slot)
            kept = [one for one in kept if one is not slot]
        return early

    def within_limits(self, slots: list[S]) -> bool:
        records, most_bytes = self.buffer.max_records, self.buffer.max_bytes
        return (records is None or len(slots) <= records) and (
            most_bytes is None or sum(map(bytes_of, slots)) <= most_bytes
        )


def bytes_of(slot: Slot) -> int:
    """Bytes of its key, once, and of all values of panes and retractions."""
    return width(dict(slot.key)) + sum(width(dict(pane.values)) for pane in slot.contents())


def width(value: Any) -> int:
    """UTF-8 of strings, else the type's width, lists and structs the sum of their parts, nulls 0."""
    match value:
        case None:
            return 0
        case bool():
            return 1
        case int() | float() | datetime():
            return 8
        case Decimal():
            return 16
        case str():
            return len(value.encode())
        case Mapping():
            return sum(map(width, value.values()))
        case list() | tuple():
            return sum(map(width, value))
    raise NotImplementedError(repr(value))
