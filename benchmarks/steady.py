"""Milliseconds per batch under a steady load, compared with Spark's own aggregate, in turns.

    python benchmarks/steady.py [--rate 50000] [--seconds 90] [--rounds 2]

Spark's rate source gives the rows of each second; windows of a minute over 1,000 keys, count and sum, early panes per batch. The first
30 seconds of a run do not count. Each run is a process of its own. The floor has the Python stages of ours, which do nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from one_run import session
from programs import PROGRAMS
from pyspark.sql import functions as F

_WARM_SECONDS = 30
_PROGRAMS = ("beamish", "Spark update", "floor of two stages")


def run(program: str, rate: int, seconds: int) -> list[int]:
    """The milliseconds of each batch with rows in this process, after the first ones."""
    rows = session("local[2]").readStream.format("rate").option("rowsPerSecond", rate).load()
    keyed = rows.select(F.col("timestamp").alias("ts"), F.format_string("key%d", F.col("value") % 1000).alias("k"))
    panes, mode = PROGRAMS[program](keyed.withColumn("x", F.length("k").cast("bigint")))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Spark's maintenance may write
        writer = panes.writeStream.format("noop").outputMode(mode).option("checkpointLocation", folder)
        query = writer.start()
        took: dict[int, int] = {}
        end, warm = time.monotonic() + _WARM_SECONDS + seconds, time.monotonic() + _WARM_SECONDS
        before = -1
        while time.monotonic() < end:
            time.sleep(1)
            if time.monotonic() < warm and query.lastProgress:
                before = query.lastProgress["batchId"]
            for batch in query.recentProgress:
                if batch["numInputRows"] > 0:
                    took[batch["batchId"]] = batch["durationMs"]["triggerExecution"]
        query.stop()
    return [ms for batch, ms in took.items() if batch > before]


def main() -> None:
    """Print median and 99th percentile of each, and ratios."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--rate", type=int, default=50_000, help="rows per second")
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--program", choices=_PROGRAMS)
    asked = parser.parse_args()
    if asked.program:
        print(*run(asked.program, asked.rate, asked.seconds))
        return
    path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}  # workers import the floor
    found: dict[str, list[int]] = {program: [] for program in _PROGRAMS}
    for _ in range(asked.rounds):
        for program, ms in found.items():
            has = ["--program", program, "--rate", str(asked.rate), "--seconds", str(asked.seconds)]
            printed = subprocess.run(
                [sys.executable, __file__, *has], check=True, stdout=subprocess.PIPE, text=True, env=environment
            )
            ms.extend(map(int, printed.stdout.splitlines()[-1].split()))
    figures = {program: (median(ms), quantiles(ms, n=100)[98]) for program, ms in found.items()}
    for program, (middle, high) in figures.items():
        print(f"{program}: {len(found[program])} batches, median {middle:.0f} ms, 99th percentile {high:.0f} ms")
    ours, *others = figures.values()
    for program, theirs in zip(_PROGRAMS[1:], others, strict=True):
        print(f"beside {program}: median {ours[0] / theirs[0]:.2f}, 99th percentile {ours[1] / theirs[1]:.2f}")


if __name__ == "__main__":
    main()
