"""``bm.inspect`` on a checkpoint with many open windows: seconds, and memory of the reading process.

``python benchmarks/inspect_checkpoint.py [WINDOWS] [SHARDS]``; by default a million windows in 8 shards. A query writes the
checkpoint in a process of its own; another one reads it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark

PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 hour"))
    .key_by("user")
    .window(bm.FixedWindows("1 minute"))
    .trigger(AfterWatermark(early=AfterProcessingTime("1 day"), late=AfterCount(1)))
    .allowed_lateness("1 day")
    .accumulating()
    .accumulate(total=Sum("v"), plays=Count(), greatest=Max("v"))
)


def session() -> SparkSession:
    """A session with the state store that pipelines need."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.master("local[2]")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", 8)
        .getOrCreate()
    )


def write(folder: str, windows: int, shards: int, first: int = 0) -> None:
    """Write rows with numbers from ``first`` on and run the query over them, to create its checkpoint or continue it."""
    spark = session()
    rows = spark.range(first, first + windows).selectExpr(
        "timestamp_seconds(1700000040 + id % 50 * 60) AS ts", "id AS user", "id % 7 AS v"
    )
    rows.write.mode("append").parquet(f"{folder}/rows")
    stream = spark.readStream.schema("ts timestamp, user bigint, v bigint").parquet(f"{folder}/rows")
    query = (
        PIPELINE.apply(stream, shards=shards)
        .writeStream.format("noop")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def read(folder: str) -> None:
    """Inspect it, and print the cost."""
    spark = session()
    spark.range(1).count()
    checkpoint = f"{folder}/checkpoint"

    def timed(what: str, call: object) -> object:
        before = time.perf_counter()
        result = call()  # type: ignore[operator]
        print(f"{what:<42} {time.perf_counter() - before:6.1f} s")
        return result

    found = timed("inspect(spark, checkpoint)", lambda: bm.inspect(spark, checkpoint))
    assert isinstance(found, bm.Inspection)
    timed("the summary", lambda: str(found))
    timed("why(key=123)", lambda: found.why(key=123))
    timed("why(key=123, window=...)", lambda: found.why(key=123, window=1700000040 + 123 % 50 * 60))
    timed("windows() of all, to the noop sink", lambda: found.windows().write.format("noop").mode("overwrite").save())
    print(found)
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]  # noqa: SLF001
    peak = next(line for line in Path(f"/proc/{jvm}/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(
        f"peak memory: Python {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB, JVM {int(peak.split()[1]) // 1024} MB"
    )


def main() -> None:
    """Write, then inspect, each in a separate process."""
    what, *rest = sys.argv[1:] or ["1000000"]
    if what == "write":
        write(rest[0], int(rest[1]), int(rest[2]))
    elif what == "read":
        read(rest[0])
    else:
        with tempfile.TemporaryDirectory() as folder:
            shards = rest[0] if rest else "8"
            subprocess.run([sys.executable, __file__, "write", folder, what, shards], check=True)
            subprocess.run([sys.executable, __file__, "read", folder], check=True)


if __name__ == "__main__":
    main()
