"""Retained count windows, in process: ms per batch and bytes of state with few and with many per key.

    python benchmarks/retained_rows.py [--keys 100] [--many 10000]

A batch brings each key as many rows as fill one window. Its cost must depend on what it touches, not on what is retained. The
last lines look up one key and some numbers, and print how many segments were read.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.contract.at_rest import Asked, Keeps
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.triggers import AfterWatermark, Always

SIZE = 10
LAST = 20


class Watched(DictStore):
    """A store that counts what is read."""

    reads = 0

    def get(self, name: str) -> bytes | None:
        self.reads += 1
        return super().get(name)


def operator_of(windows: int) -> Any:
    """The operator of windows of rows, of which so many are retained per key."""
    pipeline = (
        bm.Pipeline()
        .key_by("k")
        .window(bm.CountWindows(SIZE))
        .trigger(AfterWatermark(late=Always()))
        .allowed_lateness(rows=SIZE * windows)
        .accumulating()
        .accumulate(n=Count(), s=Sum("x"))
    )
    schema = {None: pa.schema([("k", pa.string()), ("x", pa.int64())])}
    return pipeline.flow.completed.bind(schema, shards=1).operator


def filled(windows: int, keys: int) -> tuple[Any, Watched, list[float]]:
    """The operator, its store when so many windows are retained, and the milliseconds of the last batches."""
    operator, store, took = operator_of(windows), Watched(), []
    names = np.array([f"key {number}" for number in range(keys)])
    at_once = max(1, windows // 20)
    rows_left = windows
    while rows_left > 0:  # the past, in great bundles
        many = min(at_once, rows_left)
        step(operator, store, np.repeat(names, SIZE * many))
        rows_left -= many
    for _ in range(LAST):
        begin = time.perf_counter()
        step(operator, store, np.repeat(names, SIZE))
        took.append((time.perf_counter() - begin) * 1000)
    return operator, store, took


def step(operator: Any, store: DictStore, names: Any) -> None:
    """A step with a row for each of the names."""
    nothing = pa.nulls(len(names), pa.int64())
    rows = pa.table({"k": pa.array(names), "x": pa.array(np.arange(len(names))), EVENT_TIME: nothing})
    operator.open(store).step([None], None, [payload for _, payload in operator.pack(0, rows)])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--many", type=int, default=10_000)
    arguments = parser.parse_args()
    milliseconds = {}
    for windows in (10, arguments.many):
        operator, store, took = filled(windows, arguments.keys)
        kept = arguments.keys * windows
        sizes = sum(len(store.get(name) or b"") for name in store)
        milliseconds[windows] = median(took)
        print(
            f"{windows:6} windows retained per key: {median(took):7.1f} ms per batch, {sizes / kept:6.1f} bytes per window"
        )
    print(f"ratio {milliseconds[arguments.many] / milliseconds[10]:.2f} (1.3 wanted)")
    store.reads = 0
    begin = time.perf_counter()
    middle = SIZE * arguments.many // 2
    found = operator.answer(Asked(Keeps.WINDOWS, span=(middle, middle + 10 * SIZE))).read(store).num_rows
    seconds = time.perf_counter() - begin
    segments = sum(name.startswith("s") for name in store)
    print(
        f"{found} windows of all keys in a span of {10 * SIZE} numbers: {seconds * 1000:.0f} ms, {store.reads} of {segments} segments read"
    )


if __name__ == "__main__":
    main()
