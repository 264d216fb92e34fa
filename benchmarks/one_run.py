"""One program once, in a process of its own; prints what was measured as a line of JSON.

python benchmarks/one_run.py PROGRAM ROWS FILES KEYS [batch]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from data import rows_in_files
from programs import PROGRAMS
from pyspark.sql import DataFrame, SparkSession

_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session() -> SparkSession:
    """Two cores, two shuffle partitions, RocksDB for every stateful program."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.streaming.stateStore.providerClass", _PROVIDER)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.streaming.numRecentProgressUpdates", 1000)
        .getOrCreate()
    )


def stream(spark: SparkSession, program: str, folder: str) -> dict[str, Any]:
    """Run a program over the files, one a batch; steady are the batches after the first."""
    schema = spark.read.parquet(folder).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    result, mode = PROGRAMS[program](rows)
    with tempfile.TemporaryDirectory(prefix="beamish-bench-") as checkpoint:
        begun = time.perf_counter()
        query = (
            result.writeStream.format("noop")
            .outputMode(mode)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        wall = time.perf_counter() - begun
        batches = [(p["numInputRows"], p["durationMs"]["triggerExecution"]) for p in query.recentProgress]
        states = query.recentProgress[-1]["stateOperators"]
        size = sum(path.stat().st_size for path in Path(checkpoint, "state").rglob("*") if path.is_file())
    steady = [(rows, ms) for rows, ms in batches[1:] if rows]
    return {
        "events_per_second": sum(rows for rows, _ in steady) / max(sum(ms for _, ms in steady), 1) * 1000,
        "batch_ms": sorted(ms for _, ms in steady)[len(steady) // 2],
        "wall_seconds": wall,
        "state_rows": sum(state["numRowsTotal"] for state in states),
        "checkpoint_state_bytes": size,
    }


def batch(spark: SparkSession, program: str, folder: str) -> dict[str, Any]:
    """Run a program over all files as a batch DataFrame, twice; the second time counts."""
    seconds = 0.0
    for _ in range(2):
        begun = time.perf_counter()
        result: DataFrame = PROGRAMS[program](spark.read.parquet(folder))[0]
        result.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - begun
    rows = spark.read.parquet(folder).count()
    return {"events_per_second": rows / seconds, "wall_seconds": seconds}


if __name__ == "__main__":
    _, name, *numbers = sys.argv
    at = rows_in_files(*map(int, numbers[:3]))
    measure = batch if numbers[3:] == ["batch"] else stream
    print(json.dumps({"program": name, **measure(session(), name, at)}))
