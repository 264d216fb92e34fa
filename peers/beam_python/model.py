"""Panes by the rules of Beam Python's trigger driver and of its in-process runner.

A prediction of what they give, independent of beamish: windows never expire, each trigger has timers of its own, a timer's time is taken for
the watermark, and a session keeps the state of all that merged into it. Times are microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

END_OF_TIME = 2**63 - 1
END_OF_GLOBAL = (2**63 - 1) // 1000 * 1000 - 86_400_000_000 + 1000
LEAST = -(2**63)
EVENT, CLOCK = "event", "clock"
Window = tuple[int, int]
GLOBAL: Window = (LEAST, END_OF_GLOBAL)


class RunnerError(Exception):
    """The runner fails."""


@attrs.define
class Slot:
    """The state under a number: a window's, and that of each window merged into it has its own."""

    rows: list[int] = attrs.Factory(list)
    holds: list[int] = attrs.Factory(list)
    values: dict[str, list[int]] = attrs.Factory(dict)
    """By name: counts, the part of an AfterEach, whether it is late or has a timer, and the numbers of panes."""


@attrs.define
class Key:
    """The state of a key."""

    slots: dict[int, Slot] = attrs.Factory(dict)
    windows: dict[Window, list[int]] = attrs.Factory(dict)
    timers: dict[int, dict[tuple[str, str], int]] = attrs.Factory(dict)
    """By the number of a slot, in the order in which they were set: due ones of one time fire in it."""

    def clear_timer(self, number: int, timer: tuple[str, str]) -> None:
        """Delete a timer."""
        self.timers.get(number, {}).pop(timer, None)
        if not self.timers.get(number):
            self.timers.pop(number, None)


@attrs.define
class Context:
    """A window's state as a trigger sees it, its names behind a prefix."""

    model: Model
    window: Window
    prefix: str = "trigger"

    def part(self, name: str) -> Context:
        """That of a part."""
        return Context(self.model, self.window, self.prefix + name)

    def set_timer(self, name: str, domain: str, time: int) -> None:
        """Set a timer: one per name."""
        key, number = self.model.key, self.model.number(self.window)
        key.timers.setdefault(number, {})[self.prefix + name, domain] = time

    def clear_timer(self, name: str, domain: str) -> None:
        """Delete a timer."""
        for number in self.model.key.windows.get(self.window, []):
            self.model.key.clear_timer(number, (self.prefix + name, domain))

    def add(self, name: str, value: int = 1) -> None:
        """Add a value."""
        self.model.add(self.window, self.prefix + name, value)

    def get(self, name: str) -> list[int]:
        """All values."""
        return self.model.get(self.window, self.prefix + name)

    def clear(self, name: str) -> None:
        """Delete all values."""
        self.model.clear(self.window, self.prefix + name)


@attrs.frozen
class Trigger:
    """A trigger of Beam Python."""

    kind: str
    fields: Any

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Trigger:
        """From Beam's own description."""
        ((kind, fields),) = spec.items()
        return cls(kind, fields)

    @property
    def parts(self) -> list[Trigger]:
        """Its parts."""
        if self.kind == "or_finally":
            return [Trigger.of(self.fields[name]) for name in ("main", "finally")]
        return [Trigger.of(part) for part in self.fields.get("subtriggers", [])]

    @property
    def repeated(self) -> Trigger:
        """The sub-trigger."""
        return Trigger.of(self.fields["subtrigger"])

    def firings(self, name: str) -> Trigger | None:
        """The trigger of early or late firings, repeated."""
        spec = self.fields.get(f"{name}_firings")
        return None if spec is None else Trigger("repeat", {"subtrigger": spec})

    def _current(self, context: Context) -> tuple[int, Trigger | None, Context]:
        at = max(context.get("index"), default=0)
        return at, self.parts[at] if at < len(self.parts) else None, context.part(f"{at}/")

    def _numbered(self, context: Context) -> Iterator[tuple[Trigger, Context]]:
        return ((part, context.part(f"{at}/")) for at, part in enumerate(self.parts))

    def _is_late(self, context: Context) -> Trigger | None:
        return self.firings("late") if context.get("is_late") else None

    def on_element(self, context: Context, clock: int) -> None:
        """Take a row."""
        match self.kind:
            case "default":
                context.set_timer(str(context.window), EVENT, context.window[1])
            case "after_processing_time":
                if not context.get("has_timer"):
                    context.set_timer("", CLOCK, clock + self._delay)
                context.add("has_timer")
            case "element_count":
                context.add("count")
            case "after_end_of_window":
                if late := self._is_late(context):
                    late.on_element(context.part("late"), clock)
                    return
                context.set_timer("", EVENT, context.window[1])
                if early := self.firings("early"):
                    early.on_element(context.part("early"), clock)
            case "repeat":
                self.repeated.on_element(context, clock)
            case "after_each":
                _, part, inner = self._current(context)
                if part:
                    part.on_element(inner, clock)
            case _:
                for part, inner in self._numbered(context):
                    part.on_element(inner, clock)

    @property
    def _delay(self) -> int:
        delay = self.fields["timestamp_transforms"][0]["delay"]
        return int(delay.get("delay_millis", 0)) // 1000 * 1_000_000

    def on_merge(self, merged: list[Window], context: Context) -> None:
        """Merge windows; the state of all of them is the window's already."""
        match self.kind:
            case "default":
                for window in merged:
                    context.clear_timer(str(window), EVENT)
            case "after_end_of_window":
                if late := self._is_late(context):
                    late.on_merge(merged, context.part("late"))
                    return
                if any(window[1] != context.window[1] for window in merged):
                    context.clear_timer("", EVENT)
                if early := self.firings("early"):
                    early.on_merge(merged, context.part("early"))
            case "repeat":
                self.repeated.on_merge(merged, context)
            case "after_each":
                _, part, inner = self._current(context)
                if part:
                    part.on_merge(merged, inner)
            case "after_any" | "after_all" | "or_finally":
                for part, inner in self._numbered(context):
                    part.on_merge(merged, inner)

    def should_fire(self, domain: str, time: int, context: Context) -> bool:
        """Whether it fires at a time, which is the watermark, or that of a timer."""
        ended = time >= context.window[1]
        match self.kind:
            case "default":
                if ended:
                    context.clear_timer(str(context.window), EVENT)
                return ended
            case "after_processing_time":
                return domain == CLOCK
            case "always":
                return True
            case "never":
                return False
            case "element_count":
                return len(context.get("count")) >= int(self.fields["element_count"])
            case "after_end_of_window":
                if late := self._is_late(context):
                    return late.should_fire(domain, time, context.part("late"))
                if ended:
                    context.clear_timer("", EVENT)
                    return True
                early = self.firings("early")
                return early is not None and early.should_fire(domain, time, context.part("early"))
            case "repeat":
                return self.repeated.should_fire(domain, time, context)
            case "after_each":
                _, part, inner = self._current(context)
                return part is not None and part.should_fire(domain, time, inner)
        combine = all if self.kind == "after_all" else any
        return combine(part.should_fire(domain, time, inner) for part, inner in self._numbered(context))

    def on_fire(self, time: int, context: Context) -> bool:
        """Fire; whether it is finished."""
        match self.kind:
            case "default" | "always":
                return False
            case "after_processing_time" | "element_count" | "never":
                return True
            case "after_end_of_window":
                if late := self._is_late(context):
                    return late.on_fire(time, context.part("late"))
                if time >= context.window[1]:
                    context.add("is_late")
                    return self.firings("late") is None
                if early := self.firings("early"):
                    early.on_fire(time, context.part("early"))
                return False
            case "repeat":
                if self.repeated.on_fire(time, context):
                    self.repeated.reset(context)
                return False
            case "after_each":
                at, part, inner = self._current(context)
                if part is None:
                    return False
                if part.on_fire(time, inner):
                    at += 1
                    context.add("index", at)
                return at == len(self.parts)
        combine = all if self.kind == "after_all" else any
        return combine(
            [
                part.on_fire(time, inner)
                for part, inner in self._numbered(context)
                if part.should_fire(EVENT, time, inner)
            ]
        )

    def reset(self, context: Context) -> None:
        """Start anew."""
        match self.kind:
            case "default":
                context.clear_timer(str(context.window), EVENT)
            case "after_processing_time":
                context.clear("has_timer")
            case "element_count":
                context.clear("count")
            case "after_end_of_window":
                for name in ("early", "late"):
                    if part := self.firings(name):
                        part.reset(context.part(name))
                if "late_firings" in self.fields:
                    context.clear("is_late")
            case "repeat":
                self.repeated.reset(context)
            case "after_each" | "after_any" | "after_all" | "or_finally":
                if self.kind == "after_each":
                    context.clear("index")
                for part, inner in self._numbered(context):
                    part.reset(inner)

    @property
    def has_on_time_pane(self) -> bool:
        """Whether it waits for the end of the window."""
        if self.kind in ("default", "after_end_of_window"):
            return True
        if self.kind == "repeat":
            return self.repeated.has_on_time_pane
        several = ("after_any", "after_all", "after_each", "or_finally")
        return self.kind in several and any(part.has_on_time_pane for part in self.parts)

    def may_finish(self, lateness: int) -> bool:
        """Beam Python's rule by which a trigger may lose rows."""
        match self.kind:
            case "after_processing_time" | "element_count":
                return True
            case "after_end_of_window":
                late = self.fields.get("late_firings")
                return lateness > 0 and (late is None or Trigger("repeat", {"subtrigger": late}).may_finish(lateness))
            case "after_any" | "or_finally":
                return any(part.may_finish(lateness) for part in self.parts)
            case "after_all" | "after_each":
                return all(part.may_finish(lateness) for part in self.parts)
        return False


class Model:
    """A WindowInto and a GroupByKey of Beam Python on its in-process runner."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        """For a case."""
        self.case, strategy = case, case["windowing"]
        self.trigger = Trigger.of(strategy["trigger"])
        self.lateness = int(strategy.get("allowed_lateness", 0)) * 1000
        self.discards = strategy["accumulation_mode"] == "DISCARDING"
        self.combiner = strategy["output_time"]
        self.assign = _windows(strategy["window_fn"])
        self.merging = "session_windows" in strategy["window_fn"]["urn"]
        self.input = self.output = LEAST
        self.clock = 0
        self.keys: dict[str, Key] = {}
        self.key = Key()
        self.name: Any = None
        self.step = 0
        self.given: list[dict[str, Any]] = []

    @property
    def refused(self) -> bool:
        """Whether Beam Python refuses it."""
        default_of_all_time = self.trigger.kind == "default" and self.assign(0) == [GLOBAL]
        return default_of_all_time or self.trigger.may_finish(self.lateness)

    def run(self) -> None:
        """Run the script."""
        for step, event in enumerate(self.case["script"]):
            self.step = step
            if "rows" in event:
                self._bundle(event["rows"])
            elif "clock" in event:
                self.clock = event["clock"]
            else:
                self.input = END_OF_TIME if event["watermark"] == "infinity" else event["watermark"]
            self._settle()
            if event.get("watermark") == "infinity":
                break

    # State

    def slots(self, window: Window) -> list[Slot]:
        """All state of a window."""
        return [self.key.slots.setdefault(number, Slot()) for number in self.key.windows.get(window, [])]

    def number(self, window: Window) -> int:
        """The number of the state that new values go to."""
        numbers = self.key.windows
        if window not in numbers:
            numbers[window] = [max((one for some in numbers.values() for one in some), default=0) + 1]
        return numbers[window][0]

    def slot(self, window: Window) -> Slot:
        """The state that new values go to."""
        return self.key.slots.setdefault(self.number(window), Slot())

    def add(self, window: Window, name: str, value: int = 1) -> None:
        """Add a value."""
        self.slot(window).values.setdefault(name, []).append(value)

    def get(self, window: Window, name: str) -> list[int]:
        """All values."""
        return [value for slot in self.slots(window) for value in slot.values.get(name, [])]

    def clear(self, window: Window, name: str) -> None:
        """Delete values."""
        for slot in self.slots(window):
            slot.values.pop(name, None)

    def _enter(self, name: str) -> None:
        self.name, self.key = json.loads(name), self.keys.setdefault(name, Key())

    # Timers and the output watermark

    def _settle(self) -> None:
        self._refresh()
        for _ in range(1000):
            due = sorted(
                (
                    (time, name, number, timer)
                    for name, key in self.keys.items()
                    for number, timers in key.timers.items()
                    for timer, time in timers.items()
                    if time <= (self.input if timer[1] == EVENT else self.clock)
                ),
                key=lambda one: one[0],
            )
            if not due:
                return
            for time, name, number, timer in due:
                self._enter(name)
                self.key.clear_timer(number, timer)
                self._on_timer(number, timer[1], time)
            self._refresh()
        raise RunnerError("timers without end")

    def _refresh(self) -> None:
        holds = [hold - 1 for key in self.keys.values() for slot in key.slots.values() for hold in slot.holds]
        self.output = min([self.input, *holds])

    def _on_timer(self, number: int, domain: str, time: int) -> None:
        window = next(one for one, numbers in self.key.windows.items() if number in numbers)
        if self.get(window, "tombstone"):
            return
        context = Context(self, window)
        if self.trigger.should_fire(domain, time, context):
            finished = self.trigger.on_fire(time, context)
            self._emit(window, time, finished=finished, by_watermark=domain == EVENT)

    # Rows

    def _bundle(self, rows: Iterable[Mapping[str, Any]]) -> None:
        by_key: dict[str, dict[Window, list[tuple[int, int]]]] = {}
        for row in rows:
            windows = by_key.setdefault(json.dumps(row["key"]), {})
            assigned = self.assign(row["ts"])
            if not assigned:
                raise RunnerError("a row without a window")
            for window in assigned:
                if self.input <= window[1] + self.lateness:
                    windows.setdefault(window, []).append((row["n"], row["ts"]))
        for name, windows in by_key.items():
            self._enter(name)
            self._process(windows)

    def _process(self, windows: dict[Window, list[tuple[int, int]]]) -> None:
        if self.merging and windows.keys() - self.key.windows.keys():
            merged = self._merge({*self.key.windows, *windows})
            found: dict[Window, list[tuple[int, int]]] = {}
            for window, rows in windows.items():
                found.setdefault(merged.get(window, window), []).extend(rows)
            windows = found
        for window, rows in windows.items():
            if not self.get(window, "tombstone"):
                self._add(window, rows)

    def _add(self, window: Window, rows: list[tuple[int, int]]) -> None:
        at_end = self.combiner == "END_OF_WINDOW"
        times = [window[1] - 1] if at_end else [ts for _, ts in rows if ts >= self.output]
        if times:
            pick = max if self.combiner == "LATEST_IN_PANE" else min
            self.slot(window).holds.append(pick(times))
        context = Context(self, window)
        for n, _ in rows:
            self.slot(window).rows.append(n)
            self.trigger.on_element(context, self.clock)
        if self.trigger.should_fire(EVENT, self.input, context):
            finished = self.trigger.on_fire(self.input, context)
            self._emit(window, self.output, finished=finished, by_watermark=False)

    def _merge(self, windows: set[Window]) -> dict[Window, Window]:
        groups: list[tuple[int, list[Window]]] = []
        for window in sorted(windows):
            if groups and groups[-1][0] > window[0]:
                end, members = groups[-1]
                groups[-1] = max(end, window[1]), [*members, window]
            else:
                groups.append((window[1], [window]))
        merged: dict[Window, Window] = {}
        for end, members in groups:
            if len(members) > 1:
                result = members[0][0], end
                away = [window for window in members if window != result]
                merged |= dict.fromkeys(away, result)
                for window in away:
                    self.clear(window, "panes")
                    self.clear(window, "on_time_panes")
                for window in away:
                    if window in self.key.windows:
                        numbers = self.key.windows.pop(window)
                        self.key.windows.setdefault(result, []).extend(numbers)
                self.trigger.on_merge(members, Context(self, result))
        return merged

    def _emit(self, window: Window, watermark: int, *, finished: bool, by_watermark: bool) -> None:
        index, on_time_index = len(self.get(window, "panes")), len(self.get(window, "on_time_panes"))
        self.add(window, "panes")
        if watermark < window[1]:
            timing = "EARLY"
            if on_time_index:
                self.add(window, "on_time_panes")
            else:
                on_time_index = -1
        else:
            timing = "ON_TIME" if by_watermark and on_time_index == 0 else "LATE"
            self.add(window, "on_time_panes")
        slots = self.slots(window)
        rows = [n for slot in slots for n in slot.rows]
        if finished or self.discards:
            for slot in slots:
                slot.rows.clear()
        if finished:
            self.add(window, "tombstone")
        holds = [hold for slot in slots for hold in slot.holds]
        pick: Callable[[list[int]], int] = max if self.combiner == "LATEST_IN_PANE" else min
        if self.combiner == "END_OF_WINDOW":
            pick = max
        timestamp = pick(holds) if holds else window[1] - 1
        if not (holds and watermark < window[1] and self.trigger.has_on_time_pane):
            for slot in slots:
                slot.holds.clear()
        self.given.append(
            {
                "step": self.step,
                "key": self.name,
                "start": None if window == GLOBAL else window[0],
                "end": None if window == GLOBAL else window[1],
                "timestamp": None if window == GLOBAL and timestamp == window[1] - 1 else timestamp,
                "timing": timing,
                "index": index,
                "on_time_index": on_time_index,
                "is_first": index == 0,
                "rows": sorted(rows),
            }
        )


def _windows(option: Mapping[str, Any]) -> Callable[[int], list[Window]]:
    match option["urn"].split(":")[2]:
        case "fixed_windows":
            size, offset = option["size"], option["offset"] % option["size"]
            return lambda ts: [(ts - (ts - offset) % size, ts - (ts - offset) % size + size)]
        case "sliding_windows":
            size, period = option["size"], option["period"]
            offset = option["offset"] % period
            return lambda ts: [
                (start, start + size) for start in range(ts - (ts - offset) % period, ts - size, -period)
            ]
        case "session_windows":
            return lambda ts: [(ts, ts + option["gap_size"])]
    return lambda _: [GLOBAL]
