"""Cost of a step of an as-of join as its state grows, and bytes of that state, without Spark.

    python benchmarks/versioned.py

Each case fills a shard, then times steps that bring 2,000 changes and 20,000 rows in order of time; cases take turns. The
history, the keys and the rows kept for corrections are 1, 10 and 100 times the first case's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import attrs
import numpy as np
import pyarrow as pa

import beamish as bm
from beamish.contract.operator import Operator, Shard
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME

CHANGES, ROWS, STEPS = 2_000, 20_000, 12
STEP_US = 60_000_000
_AT_ONCE = 10
"""Steps that a shard is filled by at once."""
START_US = 1_700_000_000_000_000


@attrs.frozen
class Case:
    """The state of a shard.

    Attributes:
        history: changes in the history, in steps.
        keys: number of keys.
        kept: rows kept for corrections, in steps; 0: none are.
    """

    name: str
    history: int = 20
    keys: int = 10_000
    kept: int = 0


CASES = [
    Case("first"),
    Case("history x 10", history=200),
    Case("history x 100", history=2_000),
    Case("keys x 10", keys=100_000),
    Case("keys x 100", keys=1_000_000),
    Case("kept 20 steps", kept=20),
    Case("kept x 10", kept=200, history=200),
    Case("kept x 100", kept=2_000, history=2_000),
]


class Running:
    """A filled shard, to be stepped."""

    def __init__(self, case: Case) -> None:
        table = (
            bm.Pipeline()
            .event_time("ts", bm.BoundedOutOfOrderness(0))
            .key_by("k")
            .versions(case.history * 60, allowed_lateness=case.kept * 60)
        )
        join = bm.as_of_join(rows=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)), rates=table)
        join = join.accumulating_and_retracting() if case.kept else join
        schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("x", pa.int64())])
        self.case, self.chance, self.steps = case, np.random.default_rng(7), 0
        self.operator: Operator = join.flow.bind({"rows": schema, "rates": schema}, shards=1).operator
        self.store, self.seconds = DictStore(), list[float]()
        self.begin()
        for _ in range(max(case.history, case.kept) // _AT_ONCE):
            self.step(_AT_ONCE)
        for _ in range(3):
            self.step()

    def begin(self) -> None:
        """Every key has a version from the beginning."""
        keys = np.arange(self.case.keys)
        payloads = self.operator.pack(1, _table(np.full(len(keys), START_US - STEP_US), keys))
        self.operator.open(self.store).begin([payload for _, payload in payloads])

    def step(self, several: int = 1) -> float:
        """One step from the stored bytes, with the rows of several; returns its duration in milliseconds."""
        payloads = [*self._payloads(1, CHANGES, several), *self._payloads(0, ROWS, several)]
        begun = time.perf_counter()
        shard: Shard = self.operator.open(self.store)
        shard.step([START_US + self.steps * STEP_US] * 2, None, payloads)
        self.steps += several
        return (time.perf_counter() - begun) * 1000

    def _payloads(self, number: int, count: int, several: int) -> Iterator[bytes]:
        times = START_US + self.steps * STEP_US + self.chance.integers(0, several * STEP_US, several * count)
        keys = self.chance.integers(0, self.case.keys, several * count)
        for _, payload in self.operator.pack(number, _table(times, keys)):
            yield payload

    def bytes_of(self, name: str) -> int:
        """The bytes of the entries whose names begin so."""
        return sum(len(value) for entry, value in self.store.items() if entry.startswith(name))


def _table(times: np.ndarray, keys: np.ndarray) -> pa.Table:
    time_us = pa.array(times)
    return pa.table({"ts": time_us.cast(pa.timestamp("us", "UTC")), "k": keys, "x": keys % 1000, EVENT_TIME: time_us})


def main() -> None:
    """Print a table."""
    running = [Running(case) for case in CASES]
    for _ in range(STEPS):
        for one in running:
            one.seconds.append(one.step())
    first = {bool(one.case.kept): median(one.seconds) for one in reversed(running)}
    print(f"{'case':<16} {'ms/step':>8} {'ratio':>6} {'versions MB':>12} {'rows MB':>8}")
    for one in running:
        ms = median(one.seconds)
        versions, rows = one.bytes_of("versions/") / 1e6, (one.bytes_of("kept/") + one.bytes_of("waiting/")) / 1e6
        print(f"{one.case.name:<16} {ms:>8.1f} {ms / first[bool(one.case.kept)]:>6.2f} {versions:>12.2f} {rows:>8.2f}")
    fullest = running[2]
    versions = fullest.case.keys + CHANGES * fullest.case.history
    print(f"bytes per version {fullest.bytes_of('versions/') / versions:.1f}")
    print(f"bytes per row that waits {running[0].bytes_of('waiting/') / ROWS:.1f}")
    print(f"bytes per kept row {running[-1].bytes_of('kept/') / (ROWS * running[-1].case.kept):.1f}")


if __name__ == "__main__":
    main()
