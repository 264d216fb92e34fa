"""Panes by Beam's own rules: the output watermark with its holds, state machines of triggers, timers, and Java's division.

A prediction of what the DirectRunner of Beam Java gives, independent of beamish. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import attrs

LEAST, MOST = -(2**63) // 1000, (2**63 - 1) // 1000
END_OF_GLOBAL = MOST - 86_400_000
Window = tuple[int, int]
"""Its start and its last millisecond."""
GLOBAL: Window = (LEAST, END_OF_GLOBAL)
EVENT, CLOCK = "event", "clock"
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in any time zone


class BeamError(Exception):
    """The runner fails, or does not end."""


@attrs.define(eq=False)
class Trigger:
    """A state machine: which of its parts are finished, and a count or a target, are kept per window."""

    kind: str
    parts: list[Trigger]
    spec: Mapping[str, Any]
    number: int


def compiled(spec: Any, numbers: Iterator[int]) -> Trigger:
    """The state machine of a spec."""
    number = next(numbers)
    match spec:
        case [kind, parts]:
            return Trigger(kind, [compiled(part, numbers) for part in parts], {}, number)
        case {"is": "Repeatedly", "trigger": part}:
            return Trigger("Repeatedly", [compiled(part, numbers)], {}, number)
        case {"is": "OrFinally", "main": main, "finally_": last}:
            return Trigger("OrFinally", [compiled(main, numbers), compiled(last, numbers)], {}, number)
        case {"is": "AfterWatermark"} if "early" in spec or "late" in spec:
            parts = [compiled(spec.get("early", {"is": "Never"}), numbers)]
            parts += [compiled(spec["late"], numbers)] if "late" in spec else []
            return Trigger("EarlyAndLate", parts, {}, number)
    return Trigger(spec["is"], [], spec, number)


@attrs.define
class Pane:
    """The last pane of a window."""

    index: int
    on_time_index: int
    timing: str


@attrs.define
class Key:
    """The state of a key."""

    active: dict[Window, Any] = attrs.Factory(dict)
    """Sessions, each with the window that its rows and holds are stored under; None until it has rows."""
    rows: dict[Window, list[int]] = attrs.Factory(dict)
    fresh: dict[Window, int] = attrs.Factory(dict)
    """Rows since the last pane."""
    holds: dict[Window, int] = attrs.Factory(dict)
    extra_holds: dict[Window, int] = attrs.Factory(dict)
    finished: dict[Window, set[int]] = attrs.Factory(dict)
    counts: dict[tuple[Window, int], int] = attrs.Factory(dict)
    targets: dict[tuple[Window, int], int] = attrs.Factory(dict)
    panes: dict[Window, Pane] = attrs.Factory(dict)
    timers: set[tuple[int, str, Window]] = attrs.Factory(set)


class Model:
    """A pipeline of Beam that groups rows by key and window."""

    def __init__(self, case: Mapping[str, Any], trigger: Any) -> None:
        """For a case; the trigger's delays are Beam's."""
        self.case = case
        self.root = compiled(trigger, count())
        self.lateness: int = case["lateness"] // 1000
        self.merging = case["window"]["is"] == "Sessions"
        self.discards = case["mode"] == "discarding"
        self.assign = _windows(case["window"])
        self.input = self.output = LEAST
        self.clock = 0
        self.keys: dict[Any, Key] = {}
        self.key = Key()
        self.name: Any = None
        self.step = 0
        self.given: list[dict[str, Any]] = []
        self.expired = 0

    def run(self) -> None:
        """Run the script."""
        for step, event in enumerate(self.case["script"]):
            self.step = step
            if "rows" in event:
                self._bundle(event["rows"])
            elif "clock" in event:
                self.clock = max(self.clock, event["clock"] // 1000)
            else:
                infinite = event["watermark"] == "infinity"
                self.input = max(self.input, MOST if infinite else event["watermark"] // 1000)
            self._settle()
        self.step, self.input = len(self.case["script"]), MOST
        given = list(self.given)
        self._settle()
        if self.output < MOST:
            raise BeamError("not finished: a hold is left")
        self.given = given

    # Timers and the output watermark

    def _refresh(self) -> None:
        holds = [hold for key in self.keys.values() for some in (key.holds, key.extra_holds) for hold in some.values()]
        timers = [time for key in self.keys.values() for time, domain, _ in key.timers if domain == EVENT]
        self.output = max(self.output, min([self.input, *holds, *timers]))

    def _settle(self) -> None:
        for _ in range(1000):
            self._refresh()
            due = {
                name: sorted(one for one in key.timers if one[0] < (self.input if one[1] == EVENT else self.clock))
                for name, key in self.keys.items()
            }
            due = {name: timers for name, timers in due.items() if timers}
            if not due:
                return
            for name, timers in due.items():
                self._enter(name)
                self._on_timers(timers)
                self.key.timers -= {one for one in timers if one not in self.set}
        raise BeamError("not finished")

    def _set_timer(self, time: int, domain: str, window: Window) -> None:
        self.key.timers.add((time, domain, window))
        self.set.add((time, domain, window))

    def _enter(self, name: Any) -> None:
        self.name, self.key = name, self.keys.setdefault(name, Key())
        self.set: set[tuple[int, str, Window]] = set()

    def _gc(self, window: Window) -> int:
        return min(window[1] + self.lateness, END_OF_GLOBAL)

    # Rows

    def _bundle(self, rows: list[dict[str, Any]]) -> None:
        by_key: dict[Any, list[tuple[int, int, Window]]] = {}
        for row in rows:
            ts = row["ts"] // 1000
            for window in self.assign(ts):
                if window[1] + self.lateness < self.input:
                    self.expired += 1
                else:
                    by_key.setdefault(row["key"], []).append((ts, row["n"], window))
        for name, some in by_key.items():
            self._enter(name)
            self._process(some)

    def _process(self, rows: list[tuple[int, int, Window]]) -> None:
        windows = dict.fromkeys(window for _, _, window in rows)
        merged = self._merge(windows) if self.merging else {}
        windows = dict.fromkeys(merged.get(window, window) for window in windows)
        open_ones = [window for window in windows if not self._closed(window)]
        for ts, n, window in rows:
            self._row(ts, n, merged.get(window, window))
        for window in [window for window in open_ones if self._should_fire(self.root, window)]:
            self._emit(window)
        self.key.active = {window: address for window, address in self.key.active.items() if address is not None}

    def _row(self, ts: int, n: int, window: Window) -> None:
        if self._closed(window):
            return
        key = self.key
        if self.merging and key.active.get(window) is None:
            key.active[window] = window
        address = self._address(window)
        key.fresh[address] = key.fresh.get(address, 0) + 1
        self._set_timer(self._gc(window), EVENT, window)
        if not self._hold(ts, window, address):
            self._gc_hold(window, address, empty=False)
        key.rows.setdefault(address, []).append(n)
        self._on_element(self.root, window)

    def _address(self, window: Window) -> Window:
        address: Window = self.key.active[window] if self.merging else window
        return address

    def _closed(self, window: Window) -> bool:
        return self.root.number in self._finished(window)

    def _finished(self, window: Window) -> set[int]:
        return set() if self.root.kind == "Default" else self.key.finished.setdefault(window, set())

    # Sessions

    def _merge(self, new: Iterable[Window]) -> dict[Window, Window]:
        active: dict[Window, Any] = self.key.active
        for window in new:
            active.setdefault(window, None)
        groups: list[tuple[Window, list[Window]]] = []
        for window in sorted(active):
            if groups and groups[-1][0][1] >= window[0]:
                (start, end), members = groups[-1]
                groups[-1] = ((start, max(end, window[1])), [*members, window])
            else:
                groups.append((window, [window]))
        merged: dict[Window, Window] = {}
        for result, members in groups:
            if len(members) > 1:
                merged |= dict.fromkeys(members, result)
                self._on_merge(members, result)
        return merged

    def _on_merge(self, members: list[Window], result: Window) -> None:
        key, active = self.key, self.key.active
        alive = [window for window in members if active.get(window) is not None]
        addresses = [active[window] for window in alive]
        target = active.get(result) or (addresses[0] if addresses else result)
        for table in (key.rows, key.fresh):
            some: dict[Window, Any] = table
            values = [some.pop(address) for address in addresses if address in some]
            if values:
                some[target] = sum(values[1:], values[0])
        self._merge_holds(addresses, target, result)
        finished = set(self._finished(result))
        merging = [set(self._finished(window)) for window in alive]
        for window in alive:
            key.finished.pop(window, None)
        self._merge_trigger(self.root, result, alive, finished, merging)
        if self.root.kind != "Default":
            key.finished[result] = finished
        for window in alive:
            if window != result:
                for time in (window[1], self._gc(window)):
                    key.timers.discard((time, EVENT, window))
                    self.set.discard((time, EVENT, window))
                key.panes.pop(window, None)
        for window in members:
            active.pop(window, None)
        active[result] = target

    def _merge_holds(self, addresses: list[Window], target: Window, result: Window) -> None:
        key = self.key
        holds = [key.holds.pop(address) for address in addresses if address in key.holds]
        match self.case["combiner"]:
            case "end_of_window":
                if addresses:
                    self._hold(LEAST, result, target)
            case "earliest" if holds:
                key.holds[target] = min(holds)
            case "latest" if holds:
                key.holds[target] = max(holds)
        for address in addresses:
            key.extra_holds.pop(address, None)
        self._gc_hold(result, target, empty=False)

    # Holds

    def _hold(self, ts: int, window: Window, address: Window) -> bool:
        hold = window[1] if self.case["combiner"] == "end_of_window" else ts
        if hold < self.output or window[1] < self.input:
            return False
        pick = max if self.case["combiner"] == "latest" else min
        self.key.holds[address] = pick(hold, self.key.holds.get(address, hold))
        return True

    def _gc_hold(self, window: Window, address: Window, *, empty: bool) -> None:
        hold = self._gc(window)
        if hold < self.input or (empty and self.case["closing"] != "fire_always"):
            return
        hold = min(hold, MOST - 1)
        self.key.extra_holds[address] = min(hold, self.key.extra_holds.get(address, hold))

    def _release(self, window: Window, address: Window, *, finished: bool) -> int:
        key = self.key
        held = [some.pop(address) for some in (key.holds, key.extra_holds) if address in some]
        if not finished:
            self._gc_hold(window, address, empty=True)
        return min([*held, window[1]])

    # Panes

    def _on_timers(self, timers: list[tuple[int, str, Window]]) -> None:
        seen: dict[Window, tuple[bool, bool]] = {}
        for _, domain, window in timers:
            expired = self.input > self._gc(window)
            if window not in seen and not (domain == CLOCK and expired):
                seen[window] = (self.input > window[1] >= self.output, expired)
        for window, (at_end, expired) in seen.items():
            is_open = (not self.merging or window in self.key.active) and not self._closed(window)
            if expired:
                if is_open:
                    self._fire(window, finished=True)
                self._clear_all(window, is_open=is_open)
                continue
            if is_open and self._should_fire(self.root, window):
                self._emit(window)
            if at_end:
                self._set_timer(self._gc(window), EVENT, window)

    def _clear_all(self, window: Window, *, is_open: bool) -> None:
        key = self.key
        if is_open:
            address = self._address(window)
            for table in (key.rows, key.fresh, key.holds, key.extra_holds):
                table.pop(address, None)
            self._clear(self.root, window)
            key.panes.pop(window, None)
        elif self.discards and self.merging:
            key.holds.pop(window, None)
            key.extra_holds.pop(window, None)
        key.active.pop(window, None)
        key.finished.pop(window, None)

    def _emit(self, window: Window) -> None:
        key, address = self.key, self._address(window)
        self._on_fire(self.root, window)
        finished = self._closed(window)
        self._fire(window, finished=finished)
        key.fresh.pop(address, None)
        if finished or self.discards:
            key.rows.pop(address, None)
        if finished:
            self._clear(self.root, window)
            key.panes.pop(window, None)
            key.active.pop(window, None)

    def _fire(self, window: Window, *, finished: bool) -> None:
        key, address = self.key, self._address(window)
        timestamp = self._release(window, address, finished=finished)
        empty = not key.rows.get(address) if self.discards else not key.fresh.get(address)
        always = self.case["closing"] == "fire_always", self.case["on_time"] == "fire_always"
        if empty and not any(always):
            return
        before = key.panes.get(window)
        index = 0 if before is None else before.index + 1
        on_time_index = 0 if before is None else before.on_time_index + 1
        if window[1] < self.output or (before is not None and before.timing != "EARLY"):
            timing = "LATE"
        elif self.input <= window[1]:
            timing, on_time_index = "EARLY", -1
        else:
            timing = "ON_TIME"
        if not empty or (timing == "ON_TIME" and always[1]) or (finished and always[0]):
            if not finished:
                key.panes[window] = Pane(index, on_time_index, timing)
            self.given.append(
                {
                    "step": self.step,
                    "key": self.name,
                    "start": None if window == GLOBAL else window[0] * 1000,
                    "end": None if window == GLOBAL else (window[1] + 1) * 1000,
                    "timestamp": None if window == GLOBAL and timestamp == window[1] else timestamp * 1000,
                    "timing": timing,
                    "index": index,
                    "on_time_index": on_time_index,
                    "is_first": before is None,
                    "is_last": finished,
                    "rows": list(key.rows.get(address, [])),
                }
            )

    # Triggers

    def _ended(self, window: Window) -> bool:
        return self.input > window[1]

    def _unfinished(self, trigger: Trigger, window: Window) -> Trigger:
        finished = self._finished(window)
        for part in trigger.parts:
            if part.number not in finished:
                return part
        raise BeamError("firstUnfinishedSubTrigger() is null")

    def _mark(self, trigger: Trigger, window: Window, done: bool) -> None:
        finished = self._finished(window)
        (finished.add if done else finished.discard)(trigger.number)

    def _on_element(self, trigger: Trigger, window: Window) -> None:
        match trigger.kind:
            case "AfterCount":
                self.key.counts[window, trigger.number] = self.key.counts.get((window, trigger.number), 0) + 1
            case "AfterProcessingTime":
                if (window, trigger.number) not in self.key.targets:
                    target = _target(trigger.spec, self.clock)
                    self.key.targets[window, trigger.number] = target
                    self._set_timer(target, CLOCK, window)
            case "AfterWatermark" | "Default" if not self._ended(window):
                self._set_timer(window[1], EVENT, window)
            case "EarlyAndLate" | "AfterEach":
                if trigger.kind == "EarlyAndLate" and not self._ended(window):
                    self._set_timer(window[1], EVENT, window)
                parts = trigger.parts if self.merging else [self._unfinished(trigger, window)]
                for part in parts:
                    self._on_element(part, window)
            case "AfterAll":
                for part in [one for one in trigger.parts if one.number not in self._finished(window)]:
                    self._on_element(part, window)
            case _:
                for part in trigger.parts:
                    self._on_element(part, window)

    def _should_fire(self, trigger: Trigger, window: Window) -> bool:
        parts, finished = trigger.parts, self._finished(window)
        match trigger.kind:
            case "AfterCount":
                least: int = trigger.spec["n"]
                return self.key.counts.get((window, trigger.number), 0) >= least
            case "AfterProcessingTime":
                target = self.key.targets.get((window, trigger.number))
                return target is not None and self.clock > target
            case "AfterWatermark" | "Default":
                return self._ended(window)
            case "Never":
                return False
            case "EarlyAndLate":
                if parts[0].number not in finished:
                    return self._should_fire(parts[0], window) or self._ended(window)
                return len(parts) > 1 and self._should_fire(parts[1], window)
            case "AfterEach":
                return self._should_fire(self._unfinished(trigger, window), window)
            case "AfterAll":
                return all(part.number in finished or self._should_fire(part, window) for part in parts)
            case "AfterAny":
                return any(part.number in finished or self._should_fire(part, window) for part in parts)
        return any(self._should_fire(part, window) for part in parts)

    def _on_fire(self, trigger: Trigger, window: Window) -> None:
        parts = trigger.parts
        match trigger.kind:
            case "AfterCount" | "AfterProcessingTime" | "AfterWatermark":
                self._clear(trigger, window)
                self._mark(trigger, window, done=True)
            case "Never":
                raise BeamError("Never fires")
            case "EarlyAndLate":
                self._fire_early_or_late(trigger, window)
            case "AfterEach":
                self._on_fire(self._unfinished(trigger, window), window)
                for part in parts if self.merging else ():
                    self._clear(part, window)
                finished = self._finished(window)
                self._mark(trigger, window, done=all(part.number in finished for part in parts))
            case "AfterAll":
                for part in parts:
                    self._on_fire(part, window)
                self._mark(trigger, window, done=True)
            case "AfterAny":
                for part in parts:
                    (self._on_fire if self._should_fire(part, window) else self._clear)(part, window)
                self._mark(trigger, window, done=True)
            case "OrFinally":
                main, last = parts
                if self._should_fire(last, window):
                    self._on_fire(last, window)
                    self._clear(main, window)
                else:
                    self._on_fire(main, window)
                finished = self._finished(window)
                self._mark(trigger, window, done=any(part.number in finished for part in parts))
            case "Repeatedly":
                (part,) = parts
                self._on_fire(part, window)
                if part.number in self._finished(window):
                    self._reset(part, window)
                    self._clear(part, window)

    def _fire_early_or_late(self, trigger: Trigger, window: Window) -> None:
        early, *late = trigger.parts
        if early.number in self._finished(window):
            for part in late:
                self._on_fire(part, window)
                self._clear(part, window)
                self._mark(part, window, done=False)
            if not late:
                self._mark(trigger, window, done=True)
        elif not self._ended(window):
            self._on_fire(early, window)
            self._clear(early, window)
            self._mark(early, window, done=False)
        else:
            if self._should_fire(early, window):
                self._on_fire(early, window)
            self._mark(early, window, done=True)
            self._clear(early, window)
            for part in late:
                self._clear(part, window)
            if not late:
                self._mark(trigger, window, done=True)

    def _reset(self, trigger: Trigger, window: Window) -> None:
        self._mark(trigger, window, done=False)
        for part in trigger.parts:
            self._reset(part, window)

    def _clear(self, trigger: Trigger, window: Window) -> None:
        self.key.counts.pop((window, trigger.number), None)
        self.key.targets.pop((window, trigger.number), None)
        for part in trigger.parts:
            self._clear(part, window)

    def _merge_trigger(
        self, trigger: Trigger, window: Window, alive: list[Window], finished: set[int], merging: list[set[int]]
    ) -> None:
        """Merge a state machine; ``finished``: of the result, ``merging``: of each session that has rows."""
        number, parts = trigger.number, trigger.parts

        def merge(part: Trigger) -> None:
            self._merge_trigger(part, window, alive, finished, merging)

        def mark(part: Trigger, done: bool) -> None:
            (finished.add if done else finished.discard)(part.number)

        match trigger.kind:
            case "AfterCount":
                values = self._popped(self.key.counts, alive, number)
                if any(number in some for some in merging):
                    mark(trigger, done=True)
                elif values:
                    self.key.counts[window, number] = sum(values)
            case "AfterProcessingTime":
                values = self._popped(self.key.targets, alive, number)
                if number not in finished and values:
                    self.key.targets[window, number] = min(values)
                    self._set_timer(min(values), CLOCK, window)
            case "AfterWatermark":
                mark(trigger, done=all(number in some for some in merging) and self._ended(window))
            case "Default":
                if not self._ended(window):
                    self._set_timer(window[1], EVENT, window)
            case "EarlyAndLate":
                early, *late = parts
                if not all(early.number in some for some in merging) or not self._ended(window):
                    merge(early)
                    mark(early, done=False)
                    for part in late:
                        mark(part, done=False)
                        self._clear(part, window)
                else:
                    mark(early, done=True)
                    for part in late:
                        merge(part)
            case "AfterEach":
                before = True
                for part in parts:
                    if before:
                        merge(part)
                        before = part.number in finished
                    else:
                        self._clear(part, window)
                mark(trigger, done=all(part.number in finished for part in parts))
            case _:
                for part in parts:
                    merge(part)
                done: Callable[[Iterable[bool]], bool] = all if trigger.kind == "AfterAll" else any
                if trigger.kind not in ("Repeatedly", "Never"):
                    mark(trigger, done=done(part.number in finished for part in parts))

    @staticmethod
    def _popped(table: dict[tuple[Window, int], int], windows: list[Window], number: int) -> list[int]:
        return [table.pop((window, number)) for window in windows if (window, number) in table]


def _target(spec: Mapping[str, Any], clock: int) -> int:
    target: int = clock + spec.get("delay", 0) // 1000
    if "aligned_to" not in spec:
        return target
    size, offset = spec["aligned_to"] // 1000, spec.get("offset", 0) // 1000
    past = _remainder(target - offset, size)
    return target if past == 0 else target + size - past


def _remainder(number: int, size: int) -> int:
    """Java's: it has the sign of the number."""
    return number % size if number >= 0 else -(-number % size)


def _windows(option: Mapping[str, Any]) -> Callable[[int], list[Window]]:
    match option:
        case {"is": "FixedWindows", "size": size}:
            size, offset = size // 1000, option.get("offset", 0) // 1000
            return lambda ts: [_from(ts - _remainder(ts + size - offset % size, size), size)]
        case {"is": "SlidingWindows", "size": size, "period": period}:
            size, period, offset = size // 1000, period // 1000, option.get("offset", 0) // 1000
            return lambda ts: [
                _from(start, size)
                for start in range(ts - _remainder(ts + period - offset % period, period), ts - size, -period)
            ]
        case {"is": "Sessions", "gap": gap}:
            return lambda ts: [_from(ts, gap // 1000)]
        case {"is": "CalendarWindows"}:
            return lambda ts: [_calendar(option, ts)]
    return lambda _: [GLOBAL]


def _from(start: int, size: int) -> Window:
    return start, start + size - 1


def _calendar(option: Mapping[str, Any], ts: int) -> Window:
    """A window of days, months or years from 1970 on: their number is truncated too."""
    zone = ZoneInfo(option.get("timezone", "UTC"))
    at = datetime.fromtimestamp(ts // 1000, zone)
    if "days" in option:
        number, past = option["days"], at.toordinal() - EPOCH.toordinal()
    else:
        months = option.get("months", 0)
        number = months or option["years"]
        past = (at.year - EPOCH.year) * 12 + at.month - 1 if months else at.year - EPOCH.year
    whole = ts % 1000 == 0 and at.replace(tzinfo=None) == _date(option, past)
    past = past if past >= 0 or whole else past + 1
    begin = past - _remainder(past, number)
    start, end = (_date(option, one).replace(tzinfo=zone).timestamp() for one in (begin, begin + number))
    return round(start) * 1000, round(end) * 1000 - 1


def _date(option: Mapping[str, Any], number: int) -> datetime:
    """The day, month or year of a number from 1970 on."""
    if "days" in option:
        return EPOCH + timedelta(days=number)
    if "months" in option:
        return EPOCH.replace(year=EPOCH.year + number // 12, month=number % 12 + 1)
    return EPOCH.replace(year=EPOCH.year + number)


def may_finish(spec: Any) -> bool:
    """Beam's rule by which a trigger may finish, and lose rows."""
    match spec:
        case ["AfterAny", parts]:
            return any(map(may_finish, parts))
        case [_, parts]:
            return all(map(may_finish, parts))
        case {"is": "OrFinally", "main": main, "finally_": last}:
            return may_finish(main) or may_finish(last)
        case {"is": "AfterWatermark"}:
            return "late" not in spec
    return spec["is"] not in ("Default", "Repeatedly")


def refuses(case: Mapping[str, Any]) -> bool:
    """Whether Beam refuses a pipeline: the default trigger for all time, or a trigger that may finish."""
    trigger = case["trigger"]
    if trigger == {"is": "Default"}:
        return bool(case["window"]["is"] == "GlobalWindow")
    name = trigger["is"] if isinstance(trigger, dict) else ""
    safe = name == "Never" or (name == "AfterWatermark" and case["lateness"] == 0)
    return may_finish(trigger) and not safe
