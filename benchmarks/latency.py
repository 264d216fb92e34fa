"""Latency under load: from a row's creation to its early pane in the sink, and from a window's end to its on-time pane.

    make bench-latency                          as docs/scale.md has it
    python benchmarks/latency.py --rates "1000 10000 50000" --seconds 20 --warm 20 --triggers "0"

Rows arrive at random (a Poisson process) at each rate for ``--seconds``, one rate after the other in one query, the lowest first; before
them ``--warm`` seconds at the first rate do not count, nor does the first quarter of each rate. A row's creation is its arrival: it is
in its event time, and the source gives it to the first batch that is planned later. Windows of ten seconds over 1,000 keys, count and
maximum; the sink fetches each batch into the driver. Programs, each in a process of its own, in the same kind of session:

- beamish: early panes in each batch, on-time panes;
- Spark update: ``groupBy(window, key)`` in update mode, which has no on-time rows;
- Spark append: the same in append mode, which has final rows only.

``--triggers``: seconds from the beginning of a batch to that of the next; 0: as fast as possible. Batches queue at a rate if the median
latency of its last quarter is more than 1.5 times that of its second, or a query is ``--behind`` seconds behind: then a program ends.
Results go to build/bench/latency.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from arrivals import SECOND_US, Arrivals, Load
from numpy.typing import NDArray
from one_run import session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Max
from beamish.triggers import AfterWatermark, Always

OUT = Path("build/bench/latency.json")
PROGRAMS = ("beamish", "Spark update", "Spark append")
CORES = 2
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_QUEUES = 1.5


def _timed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("ts", F.timestamp_micros("created_us"))


def _beamish(rows: DataFrame) -> DataFrame:
    keyed = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
    windowed = keyed.window(bm.FixedWindows("10 seconds")).trigger(AfterWatermark(early=Always())).accumulating()
    panes = windowed.accumulate(n=Count(), newest=Max("created_us")).apply(_timed(rows))
    return panes.select("k", "n", "newest", "window.end", (F.col("pane.timing") == "ON_TIME").alias("final"))


def _spark(rows: DataFrame, *, final: bool) -> DataFrame:
    windows = _timed(rows).withWatermark("ts", "0 seconds").groupBy(F.window("ts", "10 seconds"), "k")
    counted = windows.agg(F.count("*").alias("n"), F.max("created_us").alias("newest"))
    return counted.select("k", "n", "newest", "window.end", F.lit(final).alias("final"))


@attrs.define
class _Sink:
    """The batches in the driver: when each came, its newest row, and the latencies of final rows by the window's end."""

    came_us: dict[int, int] = attrs.field(factory=dict)
    newest_us: dict[int, int] = attrs.field(factory=dict)
    finals: list[tuple[int, int, int]] = attrs.field(factory=list)

    def __call__(self, batch: DataFrame, number: int) -> None:
        table = batch.select("n", "newest", F.unix_micros("end").alias("end_us"), "final").toArrow()
        now = time.time_ns() // 1000
        self.came_us[number] = now
        if table.num_rows:
            self.newest_us[number] = int(table["newest"].to_numpy().max())
            ends, numbers = np.unique(table["end_us"].to_numpy()[table["final"].to_numpy()], return_counts=True)
            self.finals += [(int(end), now - int(end), int(n)) for end, n in zip(ends, numbers, strict=True)]


def one(said: Mapping[str, Any]) -> dict[str, Any]:
    """Run a program with one trigger in this process, after a short rehearsal that starts workers."""
    spark = session(f"local[{CORES}]", {_CHANGELOG: "true"})
    spark.dataSource.register(Arrivals)
    rates, seconds = said["rates"], said["seconds"]
    _run(spark, said, [(2.0, 100)], behind_seconds=float("inf"))
    steps = [(said["warm"], rates[0]), *((seconds, rate) for rate in rates)]
    return {
        **said,
        "cores": CORES,
        "rates": _by_rate(*_run(spark, said, steps, said["behind"]), early=said["program"] != "Spark append"),
    }


def _run(
    spark: SparkSession, said: Mapping[str, Any], steps: Sequence[tuple[float, int]], behind_seconds: float
) -> tuple[Load, _Sink, dict[int, dict[str, Any]]]:
    """Run a program until it has read all arrivals, or is too far behind after the first step."""
    load = Load((time.time_ns() // 1000 // SECOND_US + 2) * SECOND_US, steps)
    rows = spark.readStream.format("arrivals").option("load", json.dumps(attrs.asdict(load))).load()
    result = _beamish(rows) if said["program"] == "beamish" else _spark(rows, final=said["program"] == "Spark append")
    sink, mode = _Sink(), "update" if said["program"] == "Spark update" else "append"
    progress: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="beamish-latency-") as checkpoint:
        writer = result.writeStream.outputMode(mode).option("checkpointLocation", checkpoint).foreachBatch(sink)
        query = writer.trigger(processingTime=f"{said['trigger']} seconds").start()
        read_us = load.begin_us
        while query.isActive and read_us < load.bounds_us[-1]:
            time.sleep(0.5)
            read_us = max(read_us, _keep(progress, query.recentProgress))
            now_us = time.time_ns() // 1000
            if now_us > load.bounds_us[1] and now_us - read_us > behind_seconds * SECOND_US:
                break
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
        query.stop()
        _keep(progress, query.recentProgress)
    return load, sink, progress


def _keep(progress: dict[int, dict[str, Any]], recent: Sequence[dict[str, Any]]) -> int:
    """Keep the progress of batches; returns until when rows have been read."""
    for batch in recent:
        if "addBatch" in batch["durationMs"]:
            progress.setdefault(batch["batchId"], batch)
    return max((_range(batch)[1] for batch in progress.values()), default=0)


def _range(batch: Mapping[str, Any]) -> tuple[int, int]:
    """The times from and until which a batch has rows."""
    source = next(one for one in batch["sources"] if "us" in (_offset(one["endOffset"]) or {}))
    end, start = _offset(source["endOffset"]), _offset(source["startOffset"])
    return (start or {"us": 0})["us"], end["us"]


def _offset(text: Any) -> dict[str, Any]:
    found = json.loads(text) if isinstance(text, str) else text
    return found if isinstance(found, dict) else {}


def _by_rate(
    load: Load, sink: _Sink, progress: Mapping[int, Mapping[str, Any]], *, early: bool
) -> list[dict[str, Any]]:
    """The figures of each rate, up to the first at which batches queue; ``early``: each row is in a pane of its batch."""
    created, took, durations = [], [], []
    for number, came_us in sorted(sink.came_us.items()):
        if number not in progress:
            continue
        start_us, end_us = _range(progress[number])
        at_us, _ = load.arrivals(start_us, end_us)
        if not len(at_us):
            continue
        if early and sink.newest_us.get(number) != at_us[-1]:
            raise SystemExit(f"the panes of batch {number} lack its newest row")
        created.append(at_us)
        took.append(came_us - at_us)
        durations.append((start_us, len(at_us), progress[number]["durationMs"]["triggerExecution"]))
    if not created:
        raise SystemExit("no batch was committed")
    at_us, took_us = np.concatenate(created), np.concatenate(took)
    found: list[dict[str, Any]] = []
    for (from_us, until_us), (_, rate) in zip(list(pairwise(load.bounds_us))[1:], load.steps[1:], strict=True):
        quarter = (until_us - from_us) // 4
        parts = [took_us[(at_us >= from_us + i * quarter) & (at_us < from_us + (i + 1) * quarter)] for i in range(4)]
        measured = np.concatenate(parts[1:])
        finals = [np.full(n, late) for end, late, n in sink.finals if from_us + quarter <= end <= until_us]
        on_time = np.concatenate(finals) if finals else np.zeros(0)
        batches = [(n, ms) for at, n, ms in durations if from_us + quarter <= at < until_us]
        # A query that is too far behind is stopped, and lacks rows of the last quarter.
        queues = not len(parts[3]) or bool(np.median(parts[3]) > _QUEUES * np.median(parts[1]))
        found.append(
            {
                "rate": rate,
                "rows": len(measured),
                "batches": len(batches),
                "batch_ms": float(np.median([ms for _, ms in batches])) if batches else None,
                "early_ms": _percentiles(measured),
                "on_time_ms": _percentiles(on_time),
                "queues": queues,
            }
        )
        if queues:
            break
    return found


def _percentiles(us: NDArray[Any]) -> list[float] | None:
    """Median, 95th and 99th percentile in milliseconds."""
    return [float(value) / 1000 for value in np.percentile(us, [50, 95, 99])] if len(us) else None


def table(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of a Markdown table, and where batches queue."""
    yield "| trigger | rows/s | | batch ms | creation to early pane, ms: median, 95 %, 99 % | window's end to on-time pane, ms |"
    yield "|---|---|---|---|---|---|"
    for run in runs:
        for at in run["rates"]:
            words = ["queues" if at["queues"] else _shown(at["early_ms"]), _shown(at["on_time_ms"])]
            if run["program"] == "Spark append":
                words[0] = ""
            batch = "" if at["batch_ms"] is None else f"{at['batch_ms']:,.0f}"
            yield f"| {_trigger(run['trigger'])} | {at['rate']:,} | {run['program']} | {batch} | {words[0]} | {words[1]} |"
    yield ""
    limits = {(run["program"], run["trigger"]): _limit(run) for run in runs}
    for (program, trigger), (below, above) in limits.items():
        queues = f", queue at {above:,}" if above else ""
        yield f"- {program}, {_trigger(trigger)}: batches keep up with {below:,} rows per second, {below // CORES:,} per core{queues}."
    by = {(run["program"], run["trigger"]): run for run in runs}
    for trigger in dict.fromkeys(run["trigger"] for run in runs):
        if ("beamish", trigger) in by and ("Spark update", trigger) in by:
            yield from _beside(trigger, by["beamish", trigger], by["Spark update", trigger])


def _beside(trigger: float, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    below, above = _limit(ours)
    half = (above or below) / 2
    of_them = {at["rate"]: at for at in theirs["rates"] if not at["queues"]}
    rates = [at for at in ours["rates"] if at["rate"] <= half and at["rate"] in of_them]
    if rates:
        at = rates[-1]
        ratio = at["early_ms"][2] / of_them[at["rate"]]["early_ms"][2]
        yield f"- {_trigger(trigger)}, {at['rate']:,} rows per second (at most half of that): the 99th percentile is {ratio:.2f} of Spark's."


def _limit(run: Mapping[str, Any]) -> tuple[int, int | None]:
    """The highest rate at which batches do not queue, and the lowest at which they do."""
    kept = [at["rate"] for at in run["rates"] if not at["queues"]]
    return max(kept, default=0), min((at["rate"] for at in run["rates"] if at["queues"]), default=None)


def _trigger(seconds: float) -> str:
    return f"every {seconds:g} s" if seconds else "as fast as possible"


def _shown(ms: Sequence[float] | None) -> str:
    return ", ".join(f"{value:,.0f}" for value in ms) if ms else ""


def main() -> None:
    """Run the programs in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rates", default="1000 10000 50000 100000 150000 200000 300000 400000 600000", help="rows per second"
    )
    parser.add_argument("--seconds", type=float, default=600, help="of each rate")
    parser.add_argument("--warm", type=float, default=60, help="seconds before the first rate")
    parser.add_argument("--behind", type=float, default=20, help="seconds")
    parser.add_argument("--triggers", default="0 1", help="seconds")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one")
    said = parser.parse_args()
    if said.one:
        print(json.dumps(one(json.loads(said.one))))
        return
    path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}  # the source's process imports it
    rates = sorted(map(int, said.rates.split()))
    runs: list[dict[str, Any]] = []
    for trigger in map(float, said.triggers.split()):
        for program in said.programs.split(","):
            times = {name: getattr(said, name) for name in ("seconds", "warm", "behind")}
            asked = {"program": program, "trigger": trigger, "rates": rates, **times}
            words = [sys.executable, __file__, "--one", json.dumps(asked)]
            made = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
            if made.returncode:
                raise SystemExit(f"{program} failed:\n{made.stdout[-2000:]}\n{made.stderr[-3000:]}")
            runs.append(json.loads(made.stdout.splitlines()[-1]))
            said.out.parent.mkdir(parents=True, exist_ok=True)
            said.out.write_text(json.dumps({"machine_cores": os.cpu_count(), "runs": runs}, indent=1) + "\n", "utf-8")
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
