"""One program once, in its own process; prints its measurements as a line of JSON.

python benchmarks/one_run.py '{"program": "beamish", "rows": 4000000, "files": 8, "keys": 10000}'
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import attrs
import numpy as np
from data import STEADY_FILES, rows_in_files
from processes import cpu_seconds, descendants, javas, peak_mb, pythons
from programs import PROGRAMS
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(master: str, settings: Mapping[str, Any] | None = None, *, compact: bool = False) -> SparkSession:
    """Two shuffle partitions, RocksDB for every stateful program; else Spark's own settings, unless said."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return (
        SparkSession.builder.master(master)
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.streaming.stateStore.providerClass", _PROVIDER)
        .config("spark.sql.streaming.stateStore.rocksdb.compactOnCommit", compact)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.streaming.numRecentProgressUpdates", 1000)
        .config(map={**(settings or {})})
        .getOrCreate()
    )


_COLD = 15
"""Batches in which workers still import, and the JVM compiles most."""
_AFTER_ROWS = 5
"""Batches without rows that still give the panes of those before, and are not counted."""
_MANY_WITHOUT_ROWS = 5
"""Queries that end have fewer batches without rows."""


def stream(spark: SparkSession, program: str, folder: str, parts: int = 1, *, with_rows: bool = True) -> dict[str, Any]:
    """Run a program over the files, so many a batch; steady are the batches after the first, with rows or without."""
    schema = spark.read.parquet(folder).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", parts).parquet(folder)
    results, mode = PROGRAMS[program](rows)
    with tempfile.TemporaryDirectory(prefix="beamish-bench-") as checkpoints:
        begun = time.perf_counter()
        queries = [
            _start(result, mode, f"{checkpoints}/{number}")
            for number, result in enumerate(results if isinstance(results, list) else [results])
        ]
        with _watched(queries[0]) as watched:
            for query in queries:
                if with_rows:
                    _await(query)
                else:
                    query.awaitTermination()
        wall = time.perf_counter() - begun
        return {**_figures(queries[0], with_rows=with_rows), "wall_seconds": wall, **_taken(watched)}


@attrs.frozen
class _Seen:
    """Statistics of a query's processes: number of batches, maximum memory of a worker, seconds of computing."""

    batches: int
    peak_mb: float
    workers: float
    jvm: float


def _taken(seen: Sequence[_Seen]) -> dict[str, float]:
    """The maximum memory of a Python worker; and CPU time per batch after the first."""
    first, last = next((one for one in seen if one.batches >= _COLD), seen[-1]), seen[-1]
    ms = 1000 / max(last.batches - first.batches, 1)
    return {
        "worker_peak_mb": max(one.peak_mb for one in seen),
        "workers_cpu_ms": (last.workers - first.workers) * ms,
        "jvm_cpu_ms": (last.jvm - first.jvm) * ms,
    }


@contextlib.contextmanager
def _watched(query: StreamingQuery) -> Iterator[list[_Seen]]:
    """Statistics of its processes, updated while this runs."""
    found, done = [_Seen(0, 0.0, 0.0, 0.0)], threading.Event()

    def look() -> None:
        while not done.wait(0.25):
            batches = (query.lastProgress or {"batchId": -1})["batchId"] + 1
            below = list(descendants(os.getpid()))
            workers = pythons(below)
            peak = max(map(peak_mb, workers), default=0.0)
            found.append(_Seen(batches, peak, cpu_seconds(workers), cpu_seconds(javas(below))))

    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield found
    finally:
        done.set()
        watch.join()


def _await(query: StreamingQuery) -> None:
    """Wait for its end. A ``transformWithState`` on the clock has none: Spark runs batches without rows for ever."""
    while not query.awaitTermination(2):
        last = [batch["numInputRows"] for batch in query.recentProgress[-_MANY_WITHOUT_ROWS:]]
        if len(last) == _MANY_WITHOUT_ROWS and not any(last):
            query.stop()


def _start(result: DataFrame, mode: str, checkpoint: str) -> StreamingQuery:
    writer = result.writeStream.format("noop").outputMode(mode).option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start()


def _figures(query: StreamingQuery, *, with_rows: bool) -> dict[str, Any]:
    progress = query.recentProgress
    ran = [batch for batch in progress[1:] if "addBatch" in batch["durationMs"]]
    steady = [batch for batch in ran if (batch["numInputRows"] > 0) == with_rows]
    if not with_rows:
        steady = steady[_AFTER_ROWS:]
    ms = [batch["durationMs"]["triggerExecution"] for batch in steady]
    rows = sum(batch["numInputRows"] for batch in steady)
    states = progress[-1]["stateOperators"]
    return {
        "events_per_second": rows / max(sum(ms), 1) * 1000,
        "batch_ms": median(ms),
        "batch_ms_95": float(np.percentile(ms, 95)),
        "last_batches_ms": median(ms[2 - STEADY_FILES :]),  # the first two give the panes of what came before
        "phases_ms": _phases([batch["durationMs"] for batch in steady]),
        "state_rows": sum(state["numRowsTotal"] for state in states),
        "state_file_bytes": sum(state["customMetrics"].get("rocksdbSstFileSize", 0) for state in states),
    }


def _phases(durations: Sequence[dict[str, int]]) -> dict[str, float]:
    return {name: median(each.get(name, 0) for each in durations) for name in durations[0]}


def batch(spark: SparkSession, program: str, folder: str) -> dict[str, Any]:
    """Run a program over all files as a batch DataFrame, four times; the best of the last three counts."""
    seconds = []
    for _ in range(4):
        begun = time.perf_counter()
        result: Any = PROGRAMS[program](spark.read.parquet(folder))[0]
        result.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - begun)
    rows = spark.read.parquet(folder).count()
    return {"events_per_second": rows / min(seconds[1:]), "wall_seconds": min(seconds[1:])}


if __name__ == "__main__":
    said = json.loads(sys.argv[1])
    parts, mode = said.get("parts", 1), said.get("mode", "stream")
    folder = rows_in_files(
        said["rows"],
        said["files"],
        said["keys"],
        said.get("kind", "plain"),
        parts,
        key=said.get("key", "string"),
        other=said.get("other", 0),
    )
    spark = session(said.get("master", "local[2]"), said.get("settings"), compact=mode == "state")
    at = str(Path(folder).resolve())
    if mode == "batch":
        measured = batch(spark, said["program"], at)
    else:
        measured = stream(spark, said["program"], at, parts, with_rows=said.get("kind") != "no rows")
    print(json.dumps({**said, **measured}))
