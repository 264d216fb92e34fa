"""Latency under load: from a row's creation to its early pane in the sink, and from a window's end to its on-time pane.

    make bench-latency                          with the rates of the Makefile
    python benchmarks/latency.py --rates "1000 10000 50000" --seconds 20 --warm 20 --triggers "0"
    make bench-latency KAFKA=1                  from a Kafka topic to another one
    python benchmarks/latency.py --plot docs/pictures/latency.png       draws what was measured before

Rows arrive at random (a Poisson process) at each rate for ``--seconds``, one rate after the other in one query, the lowest first; before
them ``--warm`` seconds at the first rate do not count, nor does the first quarter of each rate. A row's creation is its arrival: it is
in its event time, and the source gives it to the first batch that is planned later. Windows of ten seconds over 1,000 keys, count and
maximum; the sink fetches each batch into the driver. Programs, each in a process of its own, in the same kind of session:

- beamish: early panes in each batch, on-time panes;
- Spark update: ``groupBy(window, key)`` in update mode, which has no on-time rows;
- Spark append: the same in append mode, which has final rows only.

``--triggers``: seconds from the beginning of a batch to that of the next; 0: as fast as possible. Batches queue at a rate if the median
latency of its last quarter is more than 1.5 times that of its second, or a query is ``--behind`` seconds behind: then a program ends.
``--kafka``: kafka_latency.py's source and sink. Results go to build/bench/latency.json, or kafka-latency.json.
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

OUT = Path("build/bench")
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


def result_of(program: str, rows: DataFrame) -> tuple[DataFrame, str]:
    """A program's output, and its output mode; rows have ``k`` and ``created_us``."""
    result = _beamish(rows) if program == "beamish" else _spark(rows, final=program == "Spark append")
    return result, "update" if program == "Spark update" else "append"


def one(said: Mapping[str, Any]) -> dict[str, Any]:
    """Run a program with one trigger in this process, after a short rehearsal that starts workers."""
    rates, seconds = said["rates"], said["seconds"]
    steps = [(said["warm"], rates[0]), *((seconds, rate) for rate in rates)]
    rehearsal = [(2.0, 100)]
    if said["kafka"]:
        import kafka_latency

        spark = session(f"local[{CORES}]", {_CHANGELOG: "true", **kafka_latency.settings()})
        kafka_latency.run(spark, said, rehearsal)
        return {**said, "cores": CORES, "rates": list(by_rate(*kafka_latency.run(spark, said, steps)))}
    spark = session(f"local[{CORES}]", {_CHANGELOG: "true"})
    spark.dataSource.register(Arrivals)
    _run(spark, said, rehearsal, behind_seconds=float("inf"))
    return {
        **said,
        "cores": CORES,
        "rates": _in_batches(*_run(spark, said, steps, said["behind"]), early=said["program"] != "Spark append"),
    }


def _run(
    spark: SparkSession, said: Mapping[str, Any], steps: Sequence[tuple[float, int]], behind_seconds: float
) -> tuple[Load, _Sink, dict[int, dict[str, Any]]]:
    """Run a program until it has read all arrivals, or is too far behind after the first step."""
    load = Load.soon(steps)
    rows = spark.readStream.format("arrivals").option("load", json.dumps(attrs.asdict(load))).load()
    result, mode = result_of(said["program"], rows)
    sink = _Sink()
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


def _in_batches(
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
        durations.append((start_us, progress[number]["durationMs"]["triggerExecution"]))
    if not created:
        raise SystemExit("no batch was committed")
    found: list[dict[str, Any]] = []
    for figures in by_rate(load, np.concatenate(created), np.concatenate(took)):
        measured_us, until_us = figures["measured_us"]
        finals = [np.full(n, late) for end, late, n in sink.finals if measured_us <= end <= until_us]
        batches = [ms for at, ms in durations if measured_us <= at < until_us]
        batch_ms = float(np.median(batches)) if batches else None
        on_time = _percentiles(np.concatenate(finals)) if finals else None
        found.append({**figures, "batches": len(batches), "batch_ms": batch_ms, "on_time_ms": on_time})
    return found


def by_rate(load: Load, at_us: NDArray[np.int64], took_us: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """The latencies at each rate but the first, which warms up, until the first at which batches queue.

    ``at_us``: when rows were created; ``took_us``: how long until their panes. ``by_second``: the median and the 99th percentile of each
    second of the rate.
    """
    for (from_us, until_us), (_, rate) in zip(list(pairwise(load.bounds_us))[1:], load.steps[1:], strict=True):
        quarter = (until_us - from_us) // 4
        parts = [took_us[(at_us >= from_us + i * quarter) & (at_us < from_us + (i + 1) * quarter)] for i in range(4)]
        measured = np.concatenate(parts[1:])
        seconds = [took_us[(at_us >= at) & (at_us < at + SECOND_US)] for at in range(from_us, until_us, SECOND_US)]
        # A query that is too far behind is stopped, and lacks rows of the last quarter.
        queues = not len(parts[3]) or bool(np.median(parts[3]) > _QUEUES * np.median(parts[1]))
        yield {
            "rate": rate,
            "measured_us": [from_us + quarter, until_us],
            "rows": len(measured),
            "batch_ms": None,
            "early_ms": _percentiles(measured),
            "on_time_ms": None,
            "by_second": [[value / 1000 for value in np.percentile(part, [50, 99])] for part in seconds if len(part)],
            "queues": queues,
        }
        if queues:
            return


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


def plot(runs: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Draw the median and the 99th percentile over the rate, and second by second, of runs with the fastest trigger."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "latency"
    from matplotlib import pyplot as plt

    figure, (by_rate, over_time) = plt.subplots(2, 1, figsize=(7, 6), layout="constrained")
    drawn = [run for run in runs if not run["trigger"] and run["program"] != "Spark append"]
    for run, color in zip(drawn, ("#00796b", "#8d6e63"), strict=False):
        rates = [at for at in run["rates"] if not at["queues"]]
        for at, (name, style) in enumerate({"median": "-", "95 %": "--", "99 %": ":"}.items()):
            marks = [one["early_ms"][at] for one in rates]
            by_rate.plot(
                [one["rate"] for one in rates], marks, style, color=color, marker=".", label=f"{run['program']}, {name}"
            )
        seconds = [second for one in run["rates"] for second in one["by_second"]]
        over_time.plot([median for median, _ in seconds], "-", color=color, label=f"{run['program']}, median")
        over_time.plot([high for _, high in seconds], ":", color=color, label=f"{run['program']}, 99 %")
    by_rate.set(xlabel="rows per second", ylabel="creation to early pane, ms", xscale="log", ylim=(0, None))
    over_time.set(xlabel="seconds, the rates one after the other", ylabel="ms", ylim=(0, None))
    for panel in (by_rate, over_time):
        panel.legend(fontsize="small", frameon=False, loc="lower left", ncols=2)
        panel.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


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
    parser.add_argument("--programs", help="default: all that there are")
    parser.add_argument("--kafka", action="store_true", help="from a topic to another one")
    parser.add_argument("--plot", type=Path, help="draw what was measured before")
    parser.add_argument("--one")
    said = parser.parse_args()
    if said.one:
        print(json.dumps(one(json.loads(said.one))))
        return
    out = OUT / ("kafka-latency.json" if said.kafka else "latency.json")
    if said.plot:
        plot(json.loads(out.read_text("utf-8"))["runs"], said.plot)
        return
    if not said.kafka:
        measure(said, out, None)
        return
    import kafka_latency

    with kafka_latency.broker() as address:
        measure(said, out, address)


def measure(said: argparse.Namespace, out: Path, broker: str | None) -> None:
    """Run the programs in turns, keep what they measured, and print a table."""
    path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}  # the source's process imports it
    rates = sorted(map(int, said.rates.split()))
    programs = said.programs.split(",") if said.programs else PROGRAMS[:2] if broker else PROGRAMS
    runs: list[dict[str, Any]] = []
    for trigger in map(float, said.triggers.split()):
        for program in programs:
            times = {name: getattr(said, name) for name in ("seconds", "warm", "behind")}
            asked = {"program": program, "trigger": trigger, "rates": rates, "kafka": broker, **times}
            words = [sys.executable, __file__, "--one", json.dumps(asked)]
            made = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
            if made.returncode:
                raise SystemExit(f"{program} failed:\n{made.stdout[-2000:]}\n{made.stderr[-3000:]}")
            runs.append(json.loads(made.stdout.splitlines()[-1]))
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps({"machine_cores": os.cpu_count(), "runs": runs}, indent=1) + "\n", "utf-8")
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
