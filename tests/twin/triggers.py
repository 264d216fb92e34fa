"""When a window fires, and when its trigger is finished (rules/triggers.md#triggers, #merging-triggers).

A node is the state of one trigger of the tree in one window. The rules of a trigger are in its class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from beamish import triggers as t
from beamish.triggers import Trigger, TriggerContext


@dataclass(frozen=True)
class Now:
    """A window, with watermark and clock. ``watermark`` is -inf before there is one.

    ``value_of(name)`` is the value of an accumulation that a pane would have now, ``earliest`` the least event time of the rows that are
    shown; None: they came before.
    """

    start: int
    end: int
    watermark: float
    clock: int
    merging: bool
    value_of: Callable[[str], Any]
    earliest: int | None = None

    @property
    def at_end(self) -> bool:
        return self.watermark >= self.end


class Node:
    """A trigger in a new window. The base class behaves like Always or Never."""

    finished = False
    parts: Sequence[Node] = ()

    def __init__(self, trigger: Trigger) -> None:
        self.trigger: Any = trigger

    def show(self, rows: int, now: Now) -> bool:
        """Show rows. Returns whether a trigger that waits for the window's end saw them."""
        return False

    def ready(self, now: Now) -> bool:
        """Would it fire?"""
        return True

    def fire(self, now: Now) -> None:
        """It fires; is it finished?"""

    def merge(self, merged: Sequence[Any], now: Now) -> None:
        """Windows merge; this node is new, or that of the part equal to the result."""

    def clear(self) -> None:
        """Clear counts and timers."""
        for part in self.parts:
            part.clear()

    def reset(self) -> None:
        """Reset to the initial state."""
        self.clear()
        self.finished = False
        for part in self.parts:
            part.reset()

    def targets(self) -> Iterator[int]:
        """The clocks it waits for."""
        for part in self.parts:
            yield from part.targets()

    def due(self) -> Iterator[int]:
        """The watermarks it waits for, besides the window's end."""
        for part in self.parts:
            yield from part.due()

    @property
    def done(self) -> Any:
        return [part.finished for part in self.parts]


def node(trigger: Trigger) -> Node:
    """The state of a trigger in a new window."""
    return NODES.get(type(trigger), Own)(trigger)


def shown(parts: Sequence[Node], rows: int, now: Now) -> bool:
    """Show rows to all of them."""
    waits = [part.show(rows, now) for part in parts]
    return any(waits)


class Always(Node):
    pass


class Never(Node):
    def ready(self, now: Now) -> bool:
        return False


class Default(Node):
    def show(self, rows: int, now: Now) -> bool:
        return True

    def ready(self, now: Now) -> bool:
        return now.at_end


class AfterCount(Node):
    count = 0

    def show(self, rows: int, now: Now) -> bool:
        self.count += rows
        return False

    def ready(self, now: Now) -> bool:
        return self.count >= self.trigger.n

    def fire(self, now: Now) -> None:
        self.finished = True

    def merge(self, merged: Sequence[AfterCount], now: Now) -> None:
        # Fired in any part: fired; otherwise counts are added.
        self.finished = any(part.finished for part in merged)
        self.count = sum(part.count for part in merged)

    def clear(self) -> None:
        self.count = 0


class AfterValue(Node):
    def ready(self, now: Now) -> bool:
        value = now.value_of(self.trigger.name)
        if value is None:
            return False
        if self.trigger.at_most is not None:
            return bool(value <= self.trigger.at_most)
        return bool(value >= self.trigger.at_least) or isnan(value)  # NaN is above all

    def fire(self, now: Now) -> None:
        self.finished = True

    def merge(self, merged: Sequence[AfterValue], now: Now) -> None:
        # Fired in any part: fired.
        self.finished = any(part.finished for part in merged)


class AfterProcessingTime(Node):
    target: int | None = None

    def show(self, rows: int, now: Now) -> bool:
        # A finished one has no target.
        if not self.finished and (self.target is None or self.trigger.since == "last"):
            self.target = now.clock + self.trigger.delay.us
            if self.trigger.aligned_to:  # rules/triggers.md#waits: the first such time after it
                period, offset = self.trigger.aligned_to.us, self.trigger.offset.us
                self.target = ((self.target - offset) // period + 1) * period + offset
        return False

    def ready(self, now: Now) -> bool:
        return self.target is not None and now.clock >= self.target

    def fire(self, now: Now) -> None:
        self.finished = True
        self.target = None

    def merge(self, merged: Sequence[AfterProcessingTime], now: Now) -> None:
        # The earliest target among the parts; one that has fired starts again, but in a window equal to its own.
        choose = min if self.trigger.since == "first" else max
        self.target = choose((target for part in merged for target in part.targets()), default=None)

    def clear(self) -> None:
        self.target = None

    def targets(self) -> Iterator[int]:
        if self.target is not None:
            yield self.target


class AfterEventTime(Node):
    target: int | None = None

    def show(self, rows: int, now: Now) -> bool:
        if not self.finished:
            earliest = max(now.start, now.watermark) if now.earliest is None else now.earliest
            target = int(earliest) + self.trigger.delay.us
            if self.trigger.aligned_to:  # rules/triggers.md#event-time: the first such time after it
                period, offset = self.trigger.aligned_to.us, self.trigger.offset.us
                target = ((target - offset) // period + 1) * period + offset
            self.target = target if self.target is None else min(self.target, target)
        return False

    def ready(self, now: Now) -> bool:
        return self.target is not None and now.watermark >= self.target

    def fire(self, now: Now) -> None:
        self.finished = True
        self.target = None

    def merge(self, merged: Sequence[AfterEventTime], now: Now) -> None:
        self.target = min((part.target for part in merged if part.target is not None), default=None)

    def clear(self) -> None:
        self.target = None

    def due(self) -> Iterator[int]:
        if self.target is not None:
            yield self.target


class AfterWatermark(Node):
    """Waiting for the end (``early`` runs), then, if there is a ``late``, past it."""

    past_end = False

    def __init__(self, trigger: t.AfterWatermark) -> None:
        super().__init__(trigger)
        # rules/triggers.md#early-and-late-repeat: early and late are Repeatedly(early), Repeatedly(late).
        self.early = node(t.Repeatedly(trigger.early or t.Never()))
        self.late = node(t.Repeatedly(trigger.late or t.Never()))
        self.parts = (self.early, self.late)

    def show(self, rows: int, now: Now) -> bool:
        # rules/triggers.md#shown: to the phase it is in; in merging windows to both.
        if now.merging or not self.past_end:
            self.early.show(rows, now)
        if now.merging or self.past_end:
            self.late.show(rows, now)
        return True

    def ready(self, now: Now) -> bool:
        if self.past_end:
            return self.late.ready(now)
        return now.at_end or self.early.ready(now)

    def fire(self, now: Now) -> None:
        if self.past_end:
            self.late.fire(now)
        elif now.at_end:
            self.past_end = True
            self.early.reset()
            self.finished = self.trigger.late is None
            self.late.clear()  # not reached when this fired
        else:
            self.early.fire(now)
            self.late.clear()  # rules/triggers.md#shown: not reached

    def merge(self, merged: Sequence[AfterWatermark], now: Now) -> None:
        # Past the end only if every part is and the merged window is at its end; otherwise back to waiting, late
        # cleared.
        self.past_end = bool(merged) and all(part.past_end for part in merged) and now.at_end
        self.finished = self.past_end and self.trigger.late is None
        self.early.merge([part.early for part in merged], now)
        self.late.merge([part.late for part in merged], now)
        # The rules do not define early in a merge that stays past the end: it restarts.
        (self.early if self.past_end else self.late).reset()

    def reset(self) -> None:
        super().reset()
        self.past_end = False


class Composite(Node):
    def __init__(self, trigger: t.AfterAny | t.AfterAll | t.AfterEach) -> None:
        super().__init__(trigger)
        self.parts = [node(part) for part in trigger.parts]

    def show(self, rows: int, now: Now) -> bool:
        return shown(self.parts, rows, now)

    def merge_parts(self, merged: Sequence[Node], now: Now) -> None:
        for i, part in enumerate(self.parts):
            part.merge([other.parts[i] for other in merged], now)


class AfterAny(Composite):
    def ready(self, now: Now) -> bool:
        return any(part.finished or part.ready(now) for part in self.parts)

    def fire(self, now: Now) -> None:
        for part in self.parts:
            if part.ready(now):
                part.fire(now)
            else:
                part.clear()
        self.finished = True

    def merge(self, merged: Sequence[Node], now: Now) -> None:
        self.merge_parts(merged, now)
        self.finished = any(self.done)


class AfterAll(Composite):
    def show(self, rows: int, now: Now) -> bool:
        # rules/triggers.md#shown: to its unfinished parts.
        return shown([part for part in self.parts if not part.finished], rows, now)

    def ready(self, now: Now) -> bool:
        return all(part.finished or part.ready(now) for part in self.parts)

    def fire(self, now: Now) -> None:
        for part in self.parts:
            if not part.finished:
                part.fire(now)
        self.finished = True

    def merge(self, merged: Sequence[Node], now: Now) -> None:
        self.merge_parts(merged, now)
        self.finished = all(self.done)


class AfterEach(Composite):
    @property
    def current(self) -> int:
        """The index of the first unfinished part; the number of parts if all are finished."""
        return (*self.done, False).index(False)

    def show(self, rows: int, now: Now) -> bool:
        # rules/triggers.md#shown: to its current part; in merging windows to all.
        if now.merging:
            return super().show(rows, now)
        return shown(self.parts[self.current :][:1], rows, now)

    def ready(self, now: Now) -> bool:
        return any(part.ready(now) for part in self.parts[self.current :][:1])

    def fire(self, now: Now) -> None:
        at = self.current
        self.parts[at].fire(now)
        for part in self.parts[at + 1 :]:
            part.clear()  # rules/triggers.md#shown: not reached
        self.finished = all(self.done)

    def merge(self, merged: Sequence[Node], now: Now) -> None:
        # In order up to the first unfinished; the rest is cleared.
        for i, part in enumerate(self.parts):
            if all(self.done[:i]):
                part.merge([other.parts[i] for other in merged], now)
            else:
                part.reset()
        self.finished = all(self.done)


class Repeatedly(Node):
    def __init__(self, trigger: t.Repeatedly) -> None:
        super().__init__(trigger)
        self.repeated = node(trigger.trigger)
        self.parts = (self.repeated,)

    def show(self, rows: int, now: Now) -> bool:
        return self.repeated.show(rows, now)

    def ready(self, now: Now) -> bool:
        return self.repeated.ready(now)

    def fire(self, now: Now) -> None:
        self.repeated.fire(now)
        if self.repeated.finished:
            self.repeated.reset()

    def merge(self, merged: Sequence[Repeatedly], now: Now) -> None:
        self.repeated.merge([part.repeated for part in merged], now)


class OrFinally(Node):
    def __init__(self, trigger: t.OrFinally) -> None:
        super().__init__(trigger)
        self.main, self.until = node(trigger.main), node(trigger.finally_)
        self.parts = (self.main, self.until)

    def show(self, rows: int, now: Now) -> bool:
        return shown(self.parts, rows, now)

    def ready(self, now: Now) -> bool:
        return self.main.ready(now) or self.until.ready(now)

    def fire(self, now: Now) -> None:
        if self.until.ready(now):
            # rules/triggers.md#or-finally: only until fires and main is cleared; the whole is finished.
            self.until.fire(now)
            self.main.clear()
            self.finished = True
        else:
            self.main.fire(now)
            self.finished = self.main.finished

    def merge(self, merged: Sequence[OrFinally], now: Now) -> None:
        self.main.merge([part.main for part in merged], now)
        self.until.merge([part.until for part in merged], now)
        self.finished = self.main.finished or self.until.finished


class Own(Node):
    """A custom trigger."""

    def __init__(self, trigger: Trigger) -> None:
        super().__init__(trigger)
        self.state = trigger.create()

    def show(self, rows: int, now: Now) -> bool:
        self.state = self.trigger.on_rows(self.state, rows, context(now))
        return bool(self.trigger.waits_for_end)

    def ready(self, now: Now) -> bool:
        return bool(self.trigger.should_fire(self.state, context(now)))

    def fire(self, now: Now) -> None:
        self.state, self.finished = self.trigger.on_fire(self.state, context(now))

    def merge(self, merged: Sequence[Own], now: Now) -> None:
        if merged:
            self.state = self.trigger.on_merge([part.state for part in merged], context(now))

    def clear(self) -> None:
        self.state = self.trigger.create()

    def targets(self) -> Iterator[int]:
        target = None if self.finished else self.trigger.wakes_at(self.state)
        if target is not None:
            yield target


def context(now: Now) -> TriggerContext:
    watermark = None if now.watermark == -float("inf") else int(now.watermark)
    return TriggerContext(start_us=now.start, end_us=now.end, watermark_us=watermark, clock_us=now.clock)


NODES: dict[type[Trigger], type[Any]] = {
    t.Always: Always,
    t.Never: Never,
    t.Default: Default,
    t.AfterCount: AfterCount,
    t.AfterValue: AfterValue,
    t.AfterProcessingTime: AfterProcessingTime,
    t.AfterEventTime: AfterEventTime,
    t.AfterWatermark: AfterWatermark,
    t.AfterAny: AfterAny,
    t.AfterAll: AfterAll,
    t.AfterEach: AfterEach,
    t.Repeatedly: Repeatedly,
    t.OrFinally: OrFinally,
}
