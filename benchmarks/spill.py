"""Memory of a shard while a suppress buffers a million changes: ``python benchmarks/spill.py``.

One shard in process, its store in files, 10,000 changes per step until a million are buffered; then the watermark advances, so
that 10,000 are emitted in each step. Each variant is a process of its own; it prints its peak memory above the initial one.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import beamish as bm
from beamish.kernels.column_names import EVENT_TIME

SLOTS, STEP = 1_000_000, 10_000
BUFFERS = {
    "no limits": bm.Buffer(),
    "spill, 20,000 in memory": bm.Buffer(max_records=20_000, when_full=bm.SPILL),
}


class Files:
    """A store of files."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def _path(self, name: str) -> Path:
        return self._folder / name.replace("/", "_")

    def get(self, name: str) -> bytes | None:
        path = self._path(name)
        return path.read_bytes() if path.exists() else None

    def put(self, name: str, value: bytes) -> None:
        self._path(name).write_bytes(value)

    def remove(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)


def rows(first: int) -> pa.Table:
    """A step's changes, of keys and event times (seconds) from ``first`` on."""
    number = np.arange(first, first + STEP)
    time_us = pa.array(number * 1_000)
    return pa.table(
        {"ts": time_us, "k": pa.array([f"key{i}" for i in number]), "x": pa.array(number), EVENT_TIME: time_us}
    )


def run(buffer: bm.Buffer) -> dict[str, float]:
    """Buffer a million changes and emit them."""
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").changes()
    flow = pipeline.suppress(bm.UntilTimeLimit("1 hour", clock="event"), buffer=buffer).flow
    operator = flow.bind({None: rows(0).drop_columns([EVENT_TIME]).schema}, shards=1).operator
    with tempfile.TemporaryDirectory() as folder:
        store, out, begun = Files(folder), 0, time.perf_counter()
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for first in range(0, SLOTS, STEP):
            payloads = [payload for _, payload in operator.pack(0, rows(first))]
            out += operator.open(store).step([None], None, payloads).num_rows
        assert out == 0
        held_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
        filled = time.perf_counter() - begun
        for first in range(0, SLOTS, STEP):
            out += operator.open(store).step([3_600_000_000 + (first + STEP) * 1_000], None, []).num_rows
        assert out == SLOTS
        return {
            "most_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024,
            "bytes_per_slot": held_bytes / SLOTS,
            "seconds_to_hold": filled,
            "seconds_to_leave": time.perf_counter() - begun - filled,
        }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(run(BUFFERS[sys.argv[1]])))
    else:
        for name in BUFFERS:
            done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)
            print(name, {figure: round(value, 1) for figure, value in found.items()})
