"""Bytewax on B1's rows: count and sum by key in fixed windows of a minute, ``make bench-others``.

    python benchmarks/others/bytewax_sums.py [--rows 200000] [--keys 10000]

It runs in an environment of its own, without Spark and beamish. One process, one worker; the rows are Python tuples in
memory before the clock starts, so that reading files is not counted. Each window gives its final sums only: early and
late panes have no counterpart. The rows of a file are in no order over five minutes, and Bytewax's watermark moves row by
row, not between files as Spark's; so it waits six minutes, or most rows would be late and cost next to nothing.

Quix Streams is not here: its applications read from and write to Kafka topics and keep their state in a changelog
topic, so that it does not run without a broker.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bytewax
import bytewax.operators as op
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, TumblingWindower, fold_window
from bytewax.testing import TestingSink, TestingSource, run_main

sys.path.insert(0, str(Path(__file__).parents[1]))
from data import rows_in_files

Row = tuple[str, tuple[datetime, int]]
Sums = tuple[int, int]


def rows_of(rows: int, keys: int) -> list[Row]:
    """The benchmarks' rows, 500,000 a file as in B1, as key and (time, value)."""
    found: list[Row] = []
    for path in sorted(Path(rows_in_files(rows, max(1, rows // 500_000), keys)).glob("*.parquet")):
        table = pq.read_table(path)
        times = [ts.replace(tzinfo=UTC) for ts in table["ts"].to_pylist()]  # Bytewax takes no other UTC than datetime's
        values = table["x"].to_pylist()
        found += zip(table["k"].to_pylist(), zip(times, values, strict=True), strict=True)
    return found


def measure(rows: list[Row]) -> dict[str, float]:
    """Run the flow over the rows; every row must be in a window or late."""
    windows: list[tuple[str, tuple[int, Sums]]] = []
    late: list[object] = []
    flow = Dataflow("sums")
    clock = EventClock(ts_getter=lambda row: row[0], wait_for_system_duration=timedelta(minutes=6))
    minutes = TumblingWindower(length=timedelta(minutes=1), align_to=datetime(2023, 1, 1, tzinfo=UTC))
    out = fold_window(
        "minutes",
        op.input("rows", flow, TestingSource(rows, batch_size=10_000)),
        clock,
        minutes,
        builder=lambda: (0, 0),
        folder=lambda sums, row: (sums[0] + 1, sums[1] + row[1]),
        merger=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    )
    op.output("windows", out.down, TestingSink(windows))
    op.output("late", out.late, TestingSink(late))
    begun = time.perf_counter()
    run_main(flow)
    seconds = time.perf_counter() - begun
    counted = sum(sums[0] for _, (_, sums) in windows)
    if counted + len(late) != len(rows):
        raise SystemExit(f"{len(rows)} rows went in, {counted} and {len(late)} late ones were emitted")
    return {
        "events_per_second": round(len(rows) / seconds),
        "rows": len(rows),
        "windows": len(windows),
        "late": len(late),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=10_000)
    said = parser.parse_args()
    version = getattr(bytewax, "__version__", "")
    print(json.dumps({"program": f"bytewax {version}".strip(), **measure(rows_of(said.rows, said.keys))}))
