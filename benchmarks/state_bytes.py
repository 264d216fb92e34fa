"""Bytes of state, in process: per key that counts its rows, per open count window, per stored id.

    python benchmarks/state_bytes.py [--many 1000000]

Of the values as stored; keys and ids are letters and a number, of 10 letters or fewer. One shard.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pyarrow as pa

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME

_SCHEMA = {None: pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("x", pa.int64())])}
_MINUTE_US = 60_000_000


def _counted(size: int) -> bm.Pipeline:
    return bm.Pipeline().key_by("k").window(bm.CountWindows(size)).discarding().accumulate(n=Count(), s=Sum("x"))


_TIMED = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
_IN_WINDOWS = _TIMED.key_by("x").window(bm.FixedWindows("1 day")).accumulate(n=Count())
CASES = {
    "key that counts, no window of it open": (_counted(1), 1),
    "key that counts, with a window open: count and sum of a row": (_counted(100), 1),
    "id remembered for a day": (_TIMED.deduplicate("k", within="1 day"), 1),
    "id of a window, in windows of a day of 1,000 keys": (
        _IN_WINDOWS.deduplicate("k"),
        1000,
    ),
}


def stored(pipeline: bm.Pipeline, many: int, keys: int) -> int:
    """Bytes of what a shard stores after a row of each of so many ids, an hour of them per step."""
    operator: Any = pipeline.flow.completed.bind(_SCHEMA, shards=1).operator
    store = DictStore()
    ids = np.array([f"id {number}" for number in range(many)])
    for part in np.array_split(np.arange(many), 20):
        times = pa.array(part * (_MINUTE_US * 60) // many).cast(pa.timestamp("us", "UTC"))
        x = pa.array(part % keys)
        rows = pa.table({"ts": times, "k": ids[part], "x": x, EVENT_TIME: times.cast(pa.int64())})
        operator.open(store).step([0], None, [payload for _, payload in operator.pack(0, rows)])
    return sum(len(value) for value in store.values())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--many", type=int, default=1_000_000)
    many = parser.parse_args().many
    for what, (pipeline, keys) in CASES.items():
        less = stored(_IN_WINDOWS, many, keys) if keys > 1 else 0
        print(f"{(stored(pipeline, many, keys) - less) / many:6.1f} bytes per {what}")


if __name__ == "__main__":
    main()
