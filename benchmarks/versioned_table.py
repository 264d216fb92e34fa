"""Calls per second of ``bm.VersionedTable``, compared with a dict of sorted lists: ``python benchmarks/versioned_table.py``.

The same changes and the same reads for each: 1,000 keys, one write in ten late, a history of a tenth of all time. The dict
(``bisect``, in memory) never expires, rejects or stores anything: the obvious hand-written solution. In turns, round after round;
prints the median of the rounds.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from bisect import bisect_right, insort
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import beamish as bm

WRITES, KEYS, ROUNDS = 20_000, 1_000, 5
HISTORY = WRITES // 10


class SortedLists:
    """The times and values of each key."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}
        self.values: dict[tuple[str, float], Any] = {}

    def put(self, key: str, value: Any, ts: float) -> None:
        insort(self.times.setdefault(key, []), ts)
        self.values[key, ts] = value

    def get(self, key: str, as_of: float | None = None) -> Any:
        times = self.times.get(key, [])
        place = len(times) if as_of is None else bisect_right(times, as_of)
        return self.values[key, times[place - 1]] if place else None

    def load(self, changes: list[tuple[str, Any, float]]) -> None:
        for change in changes:
            self.put(*change)


def drawn() -> tuple[list[tuple[str, Any, float]], list[tuple[str, float]]]:
    """Writes, and reads within the history."""
    dice = random.Random(1)
    writes = [
        (f"key{dice.randrange(KEYS)}", dice.random(), ts - dice.randrange(HISTORY // 2) * (dice.random() < 0.1))
        for ts in range(HISTORY, HISTORY + WRITES)
    ]
    reads = [(f"key{dice.randrange(KEYS)}", HISTORY + WRITES - 1 - dice.randrange(HISTORY)) for _ in range(WRITES)]
    return writes, reads


def calls_per_second(work: Callable[[], None]) -> float:
    """Number of a workload's calls per second."""
    begun = time.perf_counter()
    work()
    return WRITES / (time.perf_counter() - begun)


def measured(make: Callable[[str], Any], folder: str) -> dict[str, float]:
    """Measure each kind of call on a new table; ``load`` has a table of its own."""
    writes, reads = drawn()

    def put() -> None:
        for key, value, ts in writes:
            table.put(key, value, ts)

    def get() -> None:
        for key, _ in reads:
            table.get(key)

    def get_as_of() -> None:
        for key, ts in reads:
            table.get(key, ts)

    with make(f"{folder}/put") as table:
        found = {work.__name__: calls_per_second(work) for work in (put, get, get_as_of)}
    with make(f"{folder}/load") as table:
        found["load"] = calls_per_second(lambda: table.load(writes))
    return found


WAYS: dict[str, Callable[[str], Any]] = {
    "dict and bisect": lambda _: nullcontext(SortedLists()),
    "in memory": lambda _: bm.VersionedTable(HISTORY),
    "in a file": lambda path: bm.VersionedTable(HISTORY, path=Path(path)),
}


def main() -> None:
    """Measure each in turns."""
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        for name, make in WAYS.items():
            with tempfile.TemporaryDirectory() as folder:
                rounds[name].append(measured(make, folder))
    print("thousands of calls a second")
    for name, found in rounds.items():
        print(name, {call: round(statistics.median(one[call] for one in found) / 1000) for call in found[0]})


if __name__ == "__main__":
    main()
