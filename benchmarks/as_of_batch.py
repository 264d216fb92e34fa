"""An as-of join of files as a batch, compared with other implementations: ``python benchmarks/as_of_batch.py``.

A million rows are joined with 100,000 changes of 10,000 keys; each implementation runs four times, in turns, and the best of the
last three counts. DuckDB, polars and pandas run on one machine, so they are the limit, not peers; those not installed are
skipped. Spark's own ASOF JOIN, in 4.3 and later, is off by default.
"""

from __future__ import annotations

import importlib.util
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
from beamish.spark.compile.batch import engine_panes
from beamish.spark.compile.inputs import name_inputs

ROWS, CHANGES, KEYS, TURNS = 1_000_000, 100_000, 10_000, 4
SPAN_US = 3_600_000_000
NOW = bm.BoundedOutOfOrderness(0)


def write(folder: Path) -> None:
    """The rows and the changes, as parquet."""
    chance = np.random.default_rng(7)
    names = pa.array([f"key{i}" for i in range(KEYS)])
    for name, time_column, count in (("rows", "ts", ROWS), ("rates", "changed", CHANGES)):
        times = pa.array(1_700_000_000_000_000 + chance.integers(0, SPAN_US, count)).cast(pa.timestamp("us", "UTC"))
        columns = {time_column: times, "k": names.take(pa.array(chance.integers(0, KEYS, count)))}
        pq.write_table(pa.table({**columns, name[:-1]: chance.integers(0, 1000, count)}), folder / f"{name}.parquet")


def to_nowhere(df: DataFrame) -> None:
    """Run a batch."""
    df.write.format("noop").mode("overwrite").save()


def by_window(rows: DataFrame, rates: DataFrame) -> DataFrame:
    """The union of both in order of time, and the last change at or before each row."""
    change = rates.select(
        "k", F.col("changed").alias("ts"), F.lit(None).cast("long").alias("row"), F.lit(0).alias("side"), "rate"
    )
    row = rows.select("k", "ts", "row", F.lit(1).alias("side"), F.lit(None).cast("long").alias("rate"))
    before = Window.partitionBy("k").orderBy("ts", "side").rowsBetween(Window.unboundedPreceding, 0)
    met = F.last(F.when(F.col("side") == 0, F.struct("rate", "ts")), ignorenulls=True).over(before)
    return change.unionAll(row).withColumn("met", met).where("side = 1 AND met IS NOT NULL")


def by_engine(join: bm.Pipeline, **frames: DataFrame) -> DataFrame:
    """By one pass of the engine per shard, as for plans without a native operator."""
    named = name_inputs(join.flow, None, frames)
    return engine_panes(named.bind(2), named.frames)


def by_asof_join(rows: DataFrame, rates: DataFrame) -> DataFrame:
    """Spark's ASOF JOIN, over one change per key and time."""
    rates.groupBy("k", "changed").agg(F.max("rate").alias("rate")).createOrReplaceTempView("rates")
    rows.createOrReplaceTempView("rows")
    return rows.sparkSession.sql(
        "SELECT rows.*, rates.rate, rates.changed FROM rows ASOF JOIN rates MATCH_CONDITION (rows.ts >= rates.changed) "
        "ON rows.k = rates.k"
    )


def ways(folder: Path) -> dict[str, Callable[[], Any]]:
    """The timed programs."""
    spark = session("local[2]")
    spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    spark.conf.set("spark.sql.join.sortMergeAsOfJoin.enabled", "true")
    rows, rates = (spark.read.parquet(str(folder / f"{name}.parquet")) for name in ("rows", "rates"))
    table = bm.Pipeline().event_time("changed", NOW).key_by("k").versions("1 day")
    join = bm.as_of_join(rows=bm.Pipeline().event_time("ts", NOW), rates=table)
    found: dict[str, Callable[[], Any]] = {
        "beamish": lambda: to_nowhere(join.apply(rows=rows, rates=rates)),
        "beamish, by the engine": lambda: to_nowhere(by_engine(join, rows=rows, rates=rates)),
        "Spark union and window": lambda: to_nowhere(by_window(rows, rates)),
    }
    if spark.version >= "4.3":
        found["Spark ASOF JOIN"] = lambda: to_nowhere(by_asof_join(rows, rates))
    if importlib.util.find_spec("duckdb"):
        import duckdb

        sql = "SELECT count(rate), sum(rate) FROM '{0}/rows.parquet' r ASOF JOIN '{0}/rates.parquet' c ON r.k = c.k AND r.ts >= c.changed"
        found["DuckDB ASOF JOIN"] = lambda: duckdb.sql("SET threads = 2; " + sql.format(folder)).fetchall()
    if importlib.util.find_spec("polars"):
        import polars as pl

        def polars() -> object:
            left = pl.scan_parquet(folder / "rows.parquet").sort("ts")
            right = pl.scan_parquet(folder / "rates.parquet").sort("changed")
            return left.join_asof(right, left_on="ts", right_on="changed", by="k").collect()

        found["polars join_asof"] = polars
    import pandas as pd

    def pandas() -> object:
        left = pd.read_parquet(folder / "rows.parquet").sort_values("ts")
        right = pd.read_parquet(folder / "rates.parquet").sort_values("changed")
        return pd.merge_asof(left, right, left_on="ts", right_on="changed", by="k")

    return {**found, "pandas merge_asof": pandas}


def main() -> None:
    """Print seconds."""
    with tempfile.TemporaryDirectory() as name:
        write(Path(name))
        timed = ways(Path(name))
        seconds: dict[str, list[float]] = {way: [] for way in timed}
        for _ in range(TURNS):
            for way, run in timed.items():
                begun = time.perf_counter()
                run()
                seconds[way].append(time.perf_counter() - begun)
    ours = min(seconds["beamish"][1:])
    for way, taken in seconds.items():
        print(f"{way:<24} {min(taken[1:]):6.2f} s   beamish / it {ours / min(taken[1:]):6.2f}")


if __name__ == "__main__":
    main()
