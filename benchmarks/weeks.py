"""Stability of long-running queries: memory of driver, JVM and workers, checkpoint size, and time of each batch.

    make weeks                                       both cases, as docs/reliability.md has them
    python benchmarks/weeks.py live --rows 50_000_000 --batches 500 --keys 20_000 --kept 100
    python benchmarks/weeks.py once --rows 600_000 --batches 3_000 --kept 60
    python benchmarks/weeks.py --plot                judges and draws what was measured before

Each batch is a minute of event time. ``live``: keys in windows of a minute that are kept for ``--kept`` minutes more, early and
late panes: so about keys * kept windows are open. ``once``: every key occurs once, in the global window, and expires ``--kept``
minutes later. Spark's own source makes the rows from their numbers, so nothing is read. A batch begins every second of ``live``,
every 0.4 s of ``once`` (``--every``), so that as many batches lie between two times that Spark removes what is old, however quick
they are. What is measured goes to a file as it comes, so a run that is stopped is not lost. It says at the end whether the last
quarter of the batches differs from the second: in the median of the times, in the most memory, and in the least size of the
checkpoint, which is after Spark has removed what is old (here every ten seconds); the first quarter is the warm-up.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from processes import cpu_seconds, descendants, pss_mb, pythons
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import AfterCount, AfterWatermark, Always, Never

SHOWN = {
    "batch_s": "seconds per batch",
    "cpu_s": "seconds of all processors per batch",
    "driver_mb": "driver, MB",
    "heap_mb": "JVM: heap after a collection, MB",
    "jvm_mb": "JVM: all of it, MB",
    "workers_mb": "Python workers, MB",
    "checkpoint_mb": "checkpoint, MB",
}
MEASURES = ("batch", "seconds", "rows", "workers", *SHOWN)
EVERY = {"live": 1.0, "once": 0.4}
"""Seconds from the beginning of a batch to that of the next."""
COLLECTED = 20
"""Interval of forced JVM garbage collections, in batches, between batches: the rest is live memory."""
OF_QUARTER: dict[str, Callable[[Iterable[float]], float]] = {
    "batch_s": statistics.median,
    "cpu_s": statistics.median,
    "heap_mb": min,  # a batch may run, and a JVM need not collect when it is asked to; what grows raises the least too
    "checkpoint_mb": min,
}
FLAT = 1.1
"""The last quarter may have so many times what the second has."""


def pipeline(case: str, kept: int) -> bm.Pipeline:
    """The running query."""
    rows = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("1 minute")).key_by("k")
    if case == "once":
        return (
            rows.window(bm.GlobalWindow())
            .trigger(Never())
            .forget_after(f"{kept} minutes")
            .accumulating()
            .accumulate(n=Count(), total=Sum("v"))
        )
    return (
        rows.window(bm.FixedWindows("1 minute"))
        .trigger(AfterWatermark(early=AfterCount(4), late=Always()))
        .allowed_lateness(f"{kept} minutes")
        .accumulating()
        .accumulate(n=Count(), total=Sum("v"))
    )


def source(spark: SparkSession, case: str, rows_per_batch: int, keys: int) -> DataFrame:
    """A minute of event time per batch; of ``live`` one row of 50 is up to ten minutes late."""
    rows = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows_per_batch)
        .option("numPartitions", 2)
        .option("startTimestamp", 1_700_000_000_000)
        .option("advanceMillisPerBatch", 60_000)
        .load()
    )
    number = F.col("value")
    spread = F.pmod(F.hash("value"), F.lit(60_000)).cast("long")  # where in its minute, milliseconds
    if case == "once":
        key, late = number, F.lit(0)
    else:
        key = F.pmod(F.xxhash64("value"), F.lit(keys))
        late = F.when(number % 50 == 0, F.pmod(F.xxhash64(number + 1), F.lit(600_000))).otherwise(0)
    time_ms = F.unix_millis("timestamp") + spread - late
    return rows.select(F.timestamp_millis(time_ms).alias("ts"), key.alias("k"), (number % 1000).alias("v"))


def memory() -> dict[str, float]:
    """Memory of this process, of the JVM, and of the Python processes below it."""
    below = list(descendants(os.getpid()))
    workers = pythons(below)
    return {
        "driver_mb": pss_mb(os.getpid()),
        "jvm_mb": sum(pss_mb(pid) for pid, name in below if name == "java"),
        "workers_mb": sum(map(pss_mb, workers)),
        "workers": len(workers),
    }


def size_mb(folder: Path) -> float:
    """Size of the files in a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # Spark deletes files all the time
                total += (Path(place) / name).stat().st_size
    return total / 2**20


def session(partitions: int, *, changelogs: bool) -> SparkSession:
    """A session whose JVM has a heap of 2 GB from the beginning, and which keeps little of what was: versions of state, what its UI would show."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    return (
        SparkSession.builder.master(f"local[{partitions}]")
        .appName("weeks")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", "-Xms2g -XX:+AlwaysPreTouch")
        .config("spark.sql.streaming.stateStore.providerClass", provider)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", changelogs)
        .config("spark.sql.streaming.minBatchesToRetain", 10)
        .config("spark.sql.streaming.stateStore.maintenanceInterval", "10s")  # a minute is 150 batches
        .config("spark.sql.ui.retainedExecutions", 10)
        .config("spark.ui.retainedJobs", 10)
        .config("spark.ui.retainedStages", 10)
        .config("spark.ui.retainedTasks", 100)
        .config("spark.sql.shuffle.partitions", partitions)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


class Watch:
    """The measurements, written as each batch ends."""

    def __init__(self, spark: SparkSession, query: Any, checkpoint: Path, file: Path) -> None:
        self._java: Any = spark._jvm.java.lang  # noqa: SLF001 - PySpark has no other way to it
        self._query, self._checkpoint, self._file = query, checkpoint, file
        self._begin, self._size, self._done = time.perf_counter(), 0.0, threading.Event()
        threading.Thread(target=self._sizes, daemon=True).start()

    def _sizes(self) -> None:
        while not self._done.wait(5):
            self._size = size_mb(self._checkpoint)

    def until(self, batches: int) -> None:
        """Wait for this many batches."""
        seen, heap_mb, before = -1, 0.0, cpu_seconds()
        with self._file.open("w", newline="") as file:
            out = csv.DictWriter(file, MEASURES)
            out.writeheader()
            while seen < batches - 1 and self._query.isActive:
                time.sleep(0.05)
                if (last := self._query.lastProgress) is None or last["batchId"] == seen:
                    continue
                new = [one for one in self._query.recentProgress if one["batchId"] > seen and one["numInputRows"]]
                if not new:
                    continue
                if seen // COLLECTED < new[-1]["batchId"] // COLLECTED or not heap_mb:
                    heap_mb = self._heap_mb()
                spent = cpu_seconds()
                now = {
                    **memory(),
                    "heap_mb": heap_mb,
                    "cpu_s": (spent - before) / len(new),
                    "checkpoint_mb": self._size,
                    "seconds": time.perf_counter() - self._begin,
                }
                for one in new:
                    took = one["durationMs"]["triggerExecution"] / 1000
                    row = {**now, "batch": one["batchId"], "batch_s": took, "rows": one["numInputRows"]}
                    out.writerow({name: round(row[name], 3) for name in MEASURES})
                file.flush()
                seen, before = new[-1]["batchId"], spent
        self._done.set()
        if self._query.exception() is not None:
            raise SystemExit(f"the query stopped after batch {seen}: {self._query.exception()}")

    def _heap_mb(self) -> float:
        """Live memory of the JVM."""
        self._java.System.gc()
        runtime = self._java.Runtime.getRuntime()
        return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


def run(case: str, said: argparse.Namespace, file: Path) -> None:
    """Run a case and write what is measured."""
    spark = session(said.partitions, changelogs=said.changelogs)
    folder = Path(tempfile.mkdtemp(prefix="weeks-", dir=said.folder))
    try:
        rows = source(spark, case, said.rows // said.batches, said.keys)
        out = rows.transform(pipeline(case, said.kept)).writeStream.format("noop")
        every_ms = round(1000 * (EVERY[case] if said.every is None else said.every))
        query = (
            out.option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(processingTime=f"{every_ms} milliseconds")
            .start()
        )
        Watch(spark, query, folder / "checkpoint", file).until(said.batches)
        query.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        spark.stop()


def read(file: Path) -> list[dict[str, float]]:
    """The measurements, batch by batch."""
    with file.open(newline="") as lines:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(lines)]


def judge(case: str, rows: list[dict[str, float]]) -> bool:
    """Print the second and the last quarter; whether all is flat."""
    quarter = len(rows) // 4
    flat = True
    total = sum(row["rows"] for row in rows)
    print(f"{case}: {len(rows):,} batches, {total:,.0f} rows, {rows[-1]['seconds']:,.0f} s")
    for name, words in SHOWN.items():
        of = OF_QUARTER.get(name, max)
        second, last = (of(row[name] for row in part) for part in (rows[quarter : 2 * quarter], rows[-quarter:]))
        is_flat = last <= second * FLAT
        flat &= is_flat
        print(f"  {words:<38} {second:>10,.2f} {last:>10,.2f}   {'flat' if is_flat else 'GROWS'}")
    return flat


def plot(case: str, rows: list[dict[str, float]], file: Path) -> None:
    """A small picture: one panel per measure, over the batches."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "weeks"
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(len(SHOWN), 1, figsize=(7, 8.5), sharex=True, layout="constrained")
    batches = [row["batch"] for row in rows]
    for panel, (name, words) in zip(panels, SHOWN.items(), strict=True):
        panel.plot(batches, [row[name] for row in rows], linewidth=0.8, color="#00796b", rasterized=len(rows) > 1000)
        panel.set_title(words, fontsize=8, loc="left")
        panel.set_ylim(0, max(row[name] for row in rows[len(rows) // 10 :]) * 1.25 or 1)
        panel.tick_params(labelsize=7)
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel(f"batch ({case}, {sum(row['rows'] for row in rows):,.0f} rows)", fontsize=8)
    figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)


def main() -> int:
    """Run, judge, draw; 1 if something grows."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "case", nargs="?", choices=["live", "once"], help="default: none, only judge what was measured, and draw"
    )
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--batches", type=int, default=500)
    parser.add_argument("--keys", type=int, default=20_000, help="of live")
    parser.add_argument("--kept", type=int, default=100, help="minutes that a window or a key is kept")
    parser.add_argument("--every", type=float, help="seconds from batch to batch; default: 1 of live, 0.4 of once")
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument(
        "--changelogs", action=argparse.BooleanOptionalAction, default=True, help="as docs/production.md recommends"
    )
    parser.add_argument(
        "--folder", type=Path, default=None, help="where the checkpoint is; default: the machine's place for such"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("build/weeks"), help="what was measured, one file per case"
    )
    parser.add_argument("--plot", type=Path, nargs="?", const=Path("docs/pictures"), help="draw all results there")
    said = parser.parse_args()
    said.results.mkdir(parents=True, exist_ok=True)
    if said.case is not None:
        run(said.case, said, said.results / f"{said.case}.csv")
    measured = {file.stem: read(file) for file in sorted(said.results.glob(f"{said.case or '*'}.csv"))}
    if said.plot is not None:
        said.plot.mkdir(parents=True, exist_ok=True)
        for case, rows in measured.items():
            plot(case, rows, said.plot / f"weeks-{case}.png")
    grows = [case for case, rows in measured.items() if not judge(case, rows)]
    return int(bool(grows))


if __name__ == "__main__":
    sys.exit(main())
