"""A versioned table without expiry: the rules of ``bm.VersionedTable`` one by one, over a dict of changes.

Times are microseconds. ``stream`` is the stream time; ``floor`` the time before which a reopened file has expired.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

Found = tuple[Any, int, int | None]
"""Value, valid from, valid to (None: the latest)."""


@dataclass
class TableTwin:
    """All accepted changes, by key and time; None is a delete."""

    history: int
    lateness: int
    changes: dict[Any, dict[int, Any]] = field(default_factory=dict)
    stream: int | None = None
    floor: int | None = None
    dropped: int = 0

    def is_past(self, at: int, bound: int) -> bool:
        if self.floor is not None and at < self.floor:
            return True
        return self.stream is not None and at + bound < self.stream

    @property
    def oldest(self) -> int | None:
        if self.stream is None:
            return None
        least = self.stream - self.history
        return least if self.floor is None else max(least, self.floor)

    def of(self, key: Any) -> list[Found]:
        """The key's changes by time, each with its end."""
        times = sorted(self.changes.get(key, {}))
        return [(self.changes[key][at], at, to) for at, to in zip_longest(times, times[1:])]

    def latest(self, key: Any) -> Found | None:
        changes = self.of(key)
        return changes[-1] if changes and changes[-1][0] is not None else None

    def take(self, key: Any, value: Any, at: int) -> bool:
        if self.is_past(at, self.lateness):
            return False
        self.changes.setdefault(key, {})[at] = value
        self.advance_to(at)
        return True

    def advance_to(self, at: int) -> None:
        self.stream = at if self.stream is None else max(at, self.stream)

    def put(self, key: Any, value: Any, at: int) -> tuple[int, int | None] | None:
        if not self.take(key, value, at):
            self.dropped += 1
            return None
        return next((begin, end) for _, begin, end in self.of(key) if begin == at)

    def delete(self, key: Any, at: int) -> Found | None:
        before = None if self.is_past(at, self.lateness) else self.get(key, at)
        self.put(key, None, at)
        return before

    def load(self, changes: Iterable[tuple[Any, Any, int]]) -> int:
        return sum(not self.take(*change) for change in changes)

    def get(self, key: Any, at: int | None) -> Found | None:
        if at is None:
            return self.latest(key)
        if self.is_past(at, self.history):
            latest = self.latest(key)
            return latest if latest is not None and latest[1] <= at else None
        return next((found for found in self.between(key, at, at)), None)

    def between(self, key: Any, since: int, until: int | None) -> list[Found]:
        """Versions valid at any instant of [since, until], ignoring the history."""
        return [
            (value, begin, end)
            for value, begin, end in self.of(key)
            if value is not None and (until is None or begin <= until) and (end is None or end > since)
        ]

    def versions(self, key: Any, since: int | None, until: int | None) -> list[Found]:
        if until is not None and self.is_past(until, self.history):
            found = self.get(key, until)
            return [] if found is None else [found]
        bounds = [at for at in (since, self.oldest) if at is not None]
        return self.between(key, max(bounds), until) if bounds else []

    def whole(self, at: int | None) -> dict[Any, list[Found]]:
        """The versions of all keys at a time, or (None) from ``oldest`` on."""
        if self.oldest is None:
            return {}
        since = self.oldest if at is None else at
        found = {key: self.between(key, since, at) for key in self.changes}
        return {key: versions for key, versions in found.items() if versions}

    def reopen(self, history: int, lateness: int) -> None:
        self.floor, self.history, self.lateness, self.dropped = self.oldest, history, lateness, 0
