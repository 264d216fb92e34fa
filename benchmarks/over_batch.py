"""Sum of the last hour and the value before, per row, over files as a batch: ``python benchmarks/over_batch.py``.

Rows of 10,000 keys over a day; each implementation runs four times, in turns, and the best of the last three counts. ``ROWS=16000000`` for as
many rows. beamish compiles to Spark's window functions; its engine is what a plan without them takes.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from one_run import session
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

import beamish as bm
from beamish.accumulations import Sum
from beamish.spark.compile.batch import engine_panes
from beamish.spark.compile.inputs import name_inputs

ROWS, KEYS, TURNS = int(os.environ.get("ROWS", "1000000")), 10_000, 4
HOUR_US = 3_600_000_000
OVER = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("k")
    .over(bm.Preceding("1 hour"))
    .accumulate(total=Sum("x"), before=bm.Lag("x"))
)


def write(file: Path) -> None:
    """The rows, as parquet."""
    chance = np.random.default_rng(7)
    names = pa.array([f"key{i}" for i in range(KEYS)])
    times = pa.array(1_700_000_000_000_000 + chance.integers(0, 24 * HOUR_US, ROWS)).cast(pa.timestamp("us", "UTC"))
    keys = names.take(pa.array(chance.integers(0, KEYS, ROWS)))
    pq.write_table(pa.table({"ts": times, "k": keys, "x": chance.integers(0, 1000, ROWS)}), file)


def to_nowhere(df: DataFrame) -> None:
    """Run a batch."""
    df.write.format("noop").mode("overwrite").save()


def by_spark(df: DataFrame) -> DataFrame:
    """Spark's own window functions, in the same order of rows."""
    rows = df.withColumn("us", F.unix_micros("ts"))
    by_key = Window.partitionBy("k")
    hour = by_key.orderBy("us").rangeBetween(-HOUR_US, 0)
    return rows.withColumns(
        {"total": F.sum("x").over(hour), "before": F.lag("x").over(by_key.orderBy("us", "ts", "k", "x"))}
    )


def by_engine(df: DataFrame) -> DataFrame:
    """One pass of the engine per shard, as for plans without a native operator."""
    named = name_inputs(OVER.flow, df, {})
    return engine_panes(named.bind(2), named.frames)


def main() -> None:
    """Print seconds."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "rows.parquet"
        write(file)
        df = session("local[2]").read.parquet(str(file))
        timed: dict[str, Callable[[], Any]] = {
            "beamish": lambda: to_nowhere(df.transform(OVER)),
            "beamish, by the engine": lambda: to_nowhere(by_engine(df)),
            "Spark's window functions": lambda: to_nowhere(by_spark(df)),
        }
        seconds: dict[str, list[float]] = {way: [] for way in timed}
        for _ in range(TURNS):
            for way, run in timed.items():
                begun = time.perf_counter()
                run()
                seconds[way].append(time.perf_counter() - begun)
    ours = min(seconds["beamish"][1:])
    for way, taken in seconds.items():
        print(f"{way:<26} {min(taken[1:]):6.2f} s   beamish / it {ours / min(taken[1:]):6.2f}")


if __name__ == "__main__":
    main()
