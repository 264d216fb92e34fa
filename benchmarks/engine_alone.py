"""The engine without Spark, on one core: rows per second, bytes of state per (key, window), memory of a shard.

    python benchmarks/engine_alone.py [--rows 4000000] [--keys 10000] [--shards 2]

B1's pipeline and rows. Packing before the shuffle and a step of each shard are timed together; making the rows is not.
The state's bytes are those of the values stored, keys of the windows included. The memory is what a shard takes beyond
its stored bytes in its greatest step, by Python's own count of allocations and Arrow's, in a second run that is not
timed.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from data import rows_in_files

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.triggers import AfterWatermark, Always

MINUTE_US = 60_000_000
_PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("k")
    .window(bm.FixedWindows("1 minute"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("10 minutes")
    .accumulating()
    .accumulate(n=Count(), s=Sum("x"))
)
_SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("x", pa.int64())])


def measure(rows: int, keys: int, shards: int, *, memory: bool) -> dict[str, float]:
    """A batch per file; every shard is stepped in each."""
    operator = _PIPELINE.flow.bind({None: _SCHEMA}, shards=shards).operator
    stores = [DictStore() for _ in range(shards)]
    watermark: int | None = None
    seconds, panes, peak = 0.0, 0, 0
    if memory:
        tracemalloc.start()
    for table in _tables(rows, keys):
        begun = time.perf_counter()
        payloads: dict[int, list[bytes]] = {}
        for shard, payload in operator.pack(0, table):
            payloads.setdefault(shard, []).append(payload)
        for shard, store in enumerate(stores):
            arrow = pa.total_allocated_bytes()
            if memory:
                tracemalloc.reset_peak()
            python = tracemalloc.get_traced_memory()[0] if memory else 0
            panes += operator.open(store).step([watermark], None, payloads.get(shard, [])).num_rows
            if memory:
                # Arrow's own peak is for the whole process: its bytes before are subtracted, which can only
                # overestimate.
                peak = max(
                    peak, tracemalloc.get_traced_memory()[1] - python + pa.default_memory_pool().max_memory() - arrow
                )
        seconds += time.perf_counter() - begun
        watermark = int(np.max(table[EVENT_TIME].to_numpy())) - MINUTE_US
    stored = sum(len(value) for store in stores for value in store.values())
    windows = sum(sum(pa.ipc.open_stream(store["index"]).read_all()["windows"].to_pylist()) for store in stores)
    return {
        "rows_per_second": round(rows / seconds),
        "panes": panes,
        "windows": windows,
        "state_bytes": stored,
        "state_bytes_per_window": round(stored / windows, 1),
        "step_bytes": peak,
    }


def _tables(rows: int, keys: int) -> list[pa.Table]:
    """A table per file, with event times as the engine reads them."""
    folder = Path(rows_in_files(rows, max(1, rows // 500_000), keys))
    tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    return [table.append_column(EVENT_TIME, table["ts"].cast(pa.int64())) for table in tables]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--shards", type=int, default=2)
    said = parser.parse_args()
    pa.set_cpu_count(1)
    found = measure(said.rows, said.keys, said.shards, memory=False)
    found["step_bytes"] = measure(said.rows, said.keys, said.shards, memory=True)["step_bytes"]
    print(json.dumps({**vars(said), **found}))
