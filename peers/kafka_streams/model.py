"""Updates, versions and pairs by Kafka Streams' own rules: its stores and their retention, its suppress buffers, its joins.

A prediction of what Kafka Streams gives, independent of beamish. Times are milliseconds; windows are those of Kafka.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

NEVER = -(10**15)
DAYS_30 = 30 * 86_400_000
Update = dict[str, Any]
Forward = Callable[[str, int, int, list[int] | None, int], None]
"""Takes a key, a window, its rows or None, and the time of the update."""


class FullError(Exception):
    """A buffer has exceeded its limit."""


def answer(case: Mapping[str, Any]) -> list[Update]:
    """The rows of an answer, as the program of the peer writes them. The case is as it gets it (``given``)."""
    match case["kind"]:
        case "versions":
            return list(_reads(case))
        case "as_of":
            return list(_as_of(case))
        case "join":
            return list(_joined(case))
    return _windowed(case)


def _events(case: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any], int]]:
    """The records, each with its step and time."""
    for step, event in enumerate(case["script"]):
        for row in event["rows"]:
            yield step, row, row["ts"] // 1000


# Windows


def _windowed(case: Mapping[str, Any]) -> list[Update]:
    given: list[Update] = []
    step = 0

    def emit(key: str, start: int, end: int, rows: list[int] | None, _: int) -> None:
        given.append({"step": step, "key": key, "start": start, "end": end, "rows": rows})

    forward: Forward = emit
    if case["kind"] in ("closes", "limit"):
        forward = Suppress(case, emit).put
    aggregate = AGGREGATES[case["window"]["is"]](case, forward)
    try:
        for step, row, ts in _events(case):  # noqa: B007 - emit reads it
            aggregate.put(row["key"], ts, row["n"])
    except FullError:
        given.append({"step": step, "full": True})
    return given


@attrs.define
class Suppress:
    """Holds updates: until the window closes, or for a time."""

    case: Mapping[str, Any]
    emit: Forward
    now: int = NEVER
    held: dict[tuple[str, int, int], tuple[int, int, list[int] | None, int]] = attrs.Factory(dict)
    count: int = 0

    def put(self, key: str, start: int, end: int, rows: list[int] | None, ts: int) -> None:
        """Take an update: it keeps the place of the one that it replaces."""
        case, closes = self.case, self.case["kind"] == "closes"
        self.now = max(self.now, ts)
        self.count += 1
        due, number = end if closes else ts, self.count
        due, number = self.held.get((key, start, end), (due, number, None, 0))[:2]
        self.held[key, start, end] = due, number, rows, ts
        wait = (case["grace"] + case["window"].get("gap", 0) if closes else case["wait"]) // 1000
        self._evict(lambda first: first <= self.now - wait)
        most = case["max_records"]
        if most is not None and len(self.held) > most:
            if case["when_full"] != "emit_early":
                raise FullError
            self._evict(lambda _: len(self.held) > most)

    def _evict(self, leaves: Callable[[int], bool]) -> None:
        while self.held:
            slot = min(self.held, key=lambda one: (self.held[one][0], *_as_bytes(*one)))
            due, _, rows, ts = self.held[slot]
            if not leaves(due):
                return
            del self.held[slot]
            if rows is not None or self.case["kind"] != "closes":
                self.emit(*slot, rows, ts)


def _as_bytes(key: str, start: int, end: int) -> tuple[Any, ...]:
    """The order of buffered keys of a time: their bytes."""
    return key.encode(), end, start


@attrs.define
class TimeWindows:
    """Fixed and hopping windows: none starts before 1970."""

    case: Mapping[str, Any]
    forward: Forward
    now: int = NEVER
    rows: dict[tuple[str, int], tuple[list[int], int]] = attrs.Factory(dict)
    emitted: int = NEVER

    def put(self, key: str, ts: int, n: int) -> None:
        """Take a record."""
        size = self.case["window"]["size"] // 1000
        period = self.case["window"].get("period", self.case["window"]["size"]) // 1000
        self.now = max(self.now, ts)
        closed = self.now - self.case["grace"] // 1000
        for start in range(max(0, ts - size + period) // period * period, ts + 1, period):
            if start + size > closed:
                rows, before = self.rows.get((key, start), ([], NEVER))
                self.rows[key, start] = [*rows, n], max(before, ts)
                if self.case["kind"] != "on_close":
                    self.forward(key, start, start + size, [*rows, n], max(before, ts))
        if self.case["kind"] == "on_close":
            self._close(size, closed)

    def _close(self, size: int, closed: int) -> None:
        for (key, start), (rows, ts) in sorted(self.rows.items(), key=lambda one: one[0][1]):
            if self.emitted < start + size <= closed:
                self.forward(key, start, start + size, rows, ts)
        self.emitted = max(self.emitted, closed)


@attrs.define
class Sessions:
    """Sessions: the records of a session and its last time; its tombstones as it grows."""

    case: Mapping[str, Any]
    forward: Forward
    now: int = NEVER
    rows: dict[tuple[str, int, int], list[int]] = attrs.Factory(dict)
    emitted: int = NEVER

    def put(self, key: str, ts: int, n: int) -> None:
        """Take a record."""
        gap = self.case["window"]["gap"] // 1000
        self.now = max(self.now, ts)
        closed = self.now - self.case["grace"] // 1000 - gap
        met = sorted(
            (one for one in self.rows if one[0] == key and one[2] >= ts - gap and one[1] <= ts + gap),
            key=lambda one: (one[2], one[1]),
        )
        met = [one for one in met if one[2] >= closed or self.case["kind"] == "on_close"]
        start, end = min([ts, *(one[1] for one in met)]), max([ts, *(one[2] for one in met)])
        if end >= closed:
            values = [row for one in met for row in self.rows[one]]
            on_update = self.case["kind"] != "on_close"
            for one in met if (start, end) != (ts, ts) else ():
                del self.rows[one]
                if on_update:
                    self.forward(*one, None, one[2])
            self.rows[key, start, end] = [*values, n]
            if on_update:
                self.forward(key, start, end, [*values, n], end)
        if self.case["kind"] == "on_close":
            for one, values in sorted(self.rows.items(), key=lambda one: one[0][2]):
                if self.emitted <= one[2] < closed:
                    self.forward(*one, values, one[2])
            self.emitted = max(self.emitted, closed)


@attrs.define
class SlidingWindows:
    """Windows that end at a record, or start after one. Those that exist take late records; others are made by records on time."""

    case: Mapping[str, Any]
    forward: Forward
    now: int = NEVER
    rows: dict[tuple[str, int], tuple[list[int], int]] = attrs.Factory(dict)
    """By key and start: the rows of a window, and the latest time of them."""
    emitted: int = NEVER

    @property
    def _span(self) -> int:
        span: int = self.case["window"]["difference"] // 1000
        return span

    @property
    def _closed(self) -> int:
        closed: int = self.now - self.case["grace"] // 1000
        return closed

    def put(self, key: str, ts: int, n: int) -> None:
        """Take a record."""
        span = self._span
        self.now = max(self.now, ts)
        closed = self._closed
        if ts + 1 + span > closed:
            self._put(key, ts, n)
        if self.case["kind"] == "on_close":
            for (name, start), (rows, time) in sorted(self.rows.items(), key=lambda one: one[0][1]):
                if self.emitted <= start + span < closed:
                    self.forward(name, start, start + span, rows, time)
            self.emitted = max(self.emitted, closed)

    def _put(self, key: str, ts: int, n: int) -> None:
        span = self._span
        starts = sorted(start for name, start in self.rows if name == key and ts - 2 * span <= start <= ts + 1)
        left: tuple[list[int], int] | None = None
        right: tuple[list[int], int] | None = None
        previous: int | None = None
        taken: list[tuple[int, list[int], int]] = []
        for start in starts:
            rows, latest = self.rows[key, start]
            if start + span < ts:
                left, previous = (rows, latest), latest
            elif start + span == ts:
                previous = latest if latest < ts else previous
                taken.append((start, rows, latest))
            elif start <= ts:
                right = (rows, latest)
                taken.append((start, rows, latest))
        if previous is not None and previous + 1 not in starts and previous + 1 + span >= ts:
            taken.append((previous + 1, [], ts))
        if ts - span not in starts:
            meets = left is not None and previous is not None and ts - span <= previous
            taken.append((ts - span, left[0] if left is not None and meets else [], ts))
        for start, rows, latest in taken:
            if start + span >= self._closed:
                self.rows[key, start] = [*rows, n], max(latest, ts)
                self._update(key, start)
        if ts + 1 not in starts and right is not None and right[1] > ts:
            self.rows[key, ts + 1] = right
            self._update(key, ts + 1)

    def _update(self, key: str, start: int) -> None:
        rows, time = self.rows[key, start]
        if self.case["kind"] != "on_close":
            self.forward(key, start, start + self._span, rows, time)


AGGREGATES: Mapping[str, Callable[..., Any]] = {
    "FixedWindows": TimeWindows,
    "SlidingWindows": TimeWindows,
    "Sessions": Sessions,
    "AnchoredWindows": SlidingWindows,
}


# Versioned tables


@attrs.define
class Versions:
    """A versioned store: versions by key, latest last; and by key the end of the last version that its segments hold.

    The latest version is stored apart, without an end. So a tombstone at its time only removes it if the segments end before.
    """

    history: int
    now: int = NEVER
    versions: dict[str, list[tuple[int, int | None]]] = attrs.Factory(dict)
    ends: dict[str, int] = attrs.Factory(dict)

    def put(self, key: str, n: int | None, ts: int) -> None:
        """Store a version, if it is not older than the history."""
        if ts < self.now - self.history:
            return
        self.now = max(self.now, ts)
        since, latest = (self.versions.get(key) or [(NEVER, None)])[-1]
        end = self.ends.get(key, NEVER)
        lost = n is None and latest is not None and since == ts > end
        if latest is not None and since != ts >= end:
            self.ends[key] = max(since, ts)
        elif latest is None and n is None:
            self.ends[key] = max(end, ts)
        versions = [one for one in self.versions.get(key, []) if one[0] != ts]
        self.versions[key] = versions if lost else sorted([*versions, (ts, n)])

    def get(self, key: str, ts: int) -> tuple[int, int] | None:
        """The version at a time, and since when it is valid."""
        versions = self.versions.get(key, [])
        at = bisect_right(versions, ts, key=lambda one: one[0]) - 1
        if at < 0 or (ts < self.now - self.history and at < len(versions) - 1):
            return None
        since, n = versions[at]
        return None if n is None else (n, since)


def _value(row: Mapping[str, Any]) -> int | None:
    return None if row.get("gone") else row["n"]


def _reads(case: Mapping[str, Any]) -> Iterator[Update]:
    table = Versions(case["history"] // 1000)
    for _, row, ts in _events(case):
        table.put(row["key"], _value(row), ts)
    for read in case["reads"]:
        n, since = table.get(read["key"], read["ts"] // 1000) or (None, None)
        yield {"key": read["key"], "ts": read["ts"], "n": n, "since": since}


def _as_of(case: Mapping[str, Any]) -> Iterator[Update]:
    table, now = Versions(case["history"] // 1000), NEVER
    grace = None if case["grace"] is None else case["grace"] // 1000
    waiting: list[tuple[int, str, int]] = []
    for step, row, ts in _events(case):
        if row["input"] == "table":
            table.put(row["key"], _value(row), ts)
            continue
        now = max(now, ts)
        due = [(ts, row["key"], row["n"])]
        if grace is not None and ts >= now - grace:
            waiting, due = sorted([*waiting, *due]), []
        if grace is not None:
            due += [one for one in waiting if one[0] <= now - grace]
            waiting = [one for one in waiting if one[0] > now - grace]
        for time, key, left in due:
            found = table.get(key, time)
            if found or case["how"] == "left":
                yield {"step": step, "key": key, "left": left, "right": found[0] if found else None}


# Joins of streams


@attrs.define
class Side:
    """The stored rows of a side: those older than the retention leave."""

    retention: int
    now: int = NEVER
    rows: list[tuple[int, str, int]] = attrs.Factory(list)

    def put(self, ts: int, key: str, n: int) -> None:
        """Store a row, unless it is too old."""
        self.now = max(self.now, ts)
        if ts > self.now - self.retention:
            self.rows.append((ts, key, n))

    def within(self, key: str, start: int, end: int) -> list[tuple[int, int]]:
        """The rows of a key from a time to another, included."""
        start = max(start, self.now - self.retention + 1)
        return [(ts, n) for ts, name, n in sorted(self.rows) if name == key and start <= ts <= end]


def _joined(case: Mapping[str, Any]) -> Iterator[Update]:
    before, after, grace = (case[name] // 1000 for name in ("before", "after", "grace"))
    sides = {name: Side(before + after + grace) for name in ("left", "right")}
    alone: dict[tuple[int, str], list[int]] = {}
    now = NEVER
    for step, row, ts in _events(case):
        name, key, n = row["input"], row["key"], row["n"]
        sides[name].put(ts, key, n)
        now = max(now, ts)
        if ts == now:
            for time, one in [one for one in alone if one[0] + after + grace < now]:
                for left in alone.pop((time, one)):
                    yield {"step": step, "key": one, "left": left, "right": None}
        back, ahead = (before, after) if name == "left" else (after, before)
        met = sides["right" if name == "left" else "left"].within(key, max(0, ts - back), max(0, ts + ahead))
        for time, other in met:
            pair = {"left": n, "right": other} if name == "left" else {"left": other, "right": n}
            if name == "right":
                alone.pop((time, key), None)
            yield {"step": step, "key": key, **pair}
        if case["how"] == "left" and name == "left" and not met:
            if ts + after < now:
                yield {"step": step, "key": key, "left": n, "right": None}
            else:
                alone.setdefault((ts, key), []).append(n)
