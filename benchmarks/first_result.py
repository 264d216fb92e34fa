"""The time of a first run, compared with Spark's own aggregate: a job started by cron.

    python benchmarks/first_result.py [--rounds 3]

Four files of 500 rows each, one per batch, by ``Trigger.AvailableNow``; each run is a process of its own, in turns. Counted are the seconds from
``transform`` to the end of the query; the session is there already. ``floor`` has the Python stages of ours, which do nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from one_run import session
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import beamish as bm
from beamish.accumulations import Count, Sum

_SCHEMA = "ts timestamp, k string, x int"


def beamish(rows: DataFrame) -> DataFrame:
    """Windows of a minute by beamish."""
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("10 seconds")).key_by("k")
    return rows.transform(pipeline.window(bm.FixedWindows("1 minute")).accumulate(n=Count(), s=Sum("x")))


def spark(rows: DataFrame) -> DataFrame:
    """The same by Spark."""
    marked = rows.withWatermark("ts", "10 seconds")
    return marked.groupBy(F.window("ts", "1 minute"), "k").agg(F.count("*").alias("n"), F.sum("x").alias("s"))


class _Counted(StatefulProcessor):
    """The rows of a key in a batch."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        handle.getMapState("unused", "name string", "value binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803
        yield pd.DataFrame({"k": [key[0]], "n": [sum(map(len, rows))]})


def _same(batches: Any) -> Any:
    yield from batches


def floor(rows: DataFrame) -> DataFrame:
    """The stages that any such library needs, without work: rows through Python, then a stateful processor."""
    marked = rows.mapInArrow(_same, rows.schema).withWatermark("ts", "10 seconds").groupBy("k")
    return marked.transformWithStateInPandas(
        _Counted(), "k string, n bigint", outputMode="append", timeMode="eventTime"
    )


PROGRAMS = {"beamish": beamish, "spark": spark, "floor": floor}


def run(program: str) -> float:
    """Seconds of a run in this process."""
    started = session("local[2]")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rows").mkdir()
        for number in range(4):
            rows = [
                {"ts": 1_700_000_000 + 100 * number + row % 90, "k": f"k{row % 20}", "x": row} for row in range(500)
            ]
            lines = [
                json.dumps(row | {"ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row["ts"]))}) for row in rows
            ]
            (folder / "rows" / f"{number}.json").write_text("\n".join(lines))
        stream = started.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "rows"))
        begun = time.perf_counter()
        writer = PROGRAMS[program](stream).writeStream.format("parquet").option("path", str(folder / "out"))
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        return time.perf_counter() - begun


def main() -> None:
    """Run the programs in turns and print the ratio."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", choices=list(PROGRAMS))
    said = parser.parse_args()
    if said.program:
        print(run(said.program))
        return
    seconds: dict[str, list[float]] = {program: [] for program in PROGRAMS}
    for _ in range(said.rounds):
        for program, found in seconds.items():
            command = [sys.executable, __file__, "--program", program]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found.append(float(printed.splitlines()[-1]))
    for program, found in seconds.items():
        print(f"{program}: {median(found):.1f} s ({min(found):.1f} to {max(found):.1f})")
    for peer in ("spark", "floor"):
        ratios = [ours / theirs for ours, theirs in zip(seconds["beamish"], seconds[peer], strict=True)]
        print(f"beside {peer}: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
