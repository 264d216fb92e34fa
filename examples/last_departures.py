"""Count windows on Spark: the mean delay of the last 20 departures of each airport, and every 100 flights of a carrier.

Spark's ``rowsBetween`` computes the first over a batch, but not on a stream. Here the flights arrive file by file, in the order
of departure, and each is emitted in its own batch. At the end the program compares the panes with ``rowsBetween`` over all
flights as a batch, row for row, and exits with 1 if they differ.

The second query emits every 100 flights of each carrier, with an early pane every minute of the clock.

    python examples/last_departures.py [--days N] [--batches N]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Mean
from beamish.triggers import AfterProcessingTime, AfterWatermark
from flights_and_weather import start_spark, write
from flights_replay import NEW_YORK, flights_as_they_left

ORDER = ["left", "flight_id"]

LAST_20 = (
    bm.Pipeline()
    .key_by("origin")
    .window(bm.CountWindows(20, 1, order_by=ORDER))
    .accumulate(flights=Count(), delay=Mean("delay"))
)
EVERY_100 = (
    bm.Pipeline()
    .key_by("carrier")
    .window(bm.CountWindows(100, order_by=ORDER))
    .trigger(AfterWatermark(early=AfterProcessingTime(aligned_to="1 minute")))
    .accumulating()
    .accumulate(flights=Count(), delay=Mean("delay"))
)


def main() -> int:
    """Replay, report, check; 0 if the stream equals the batch computation."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "--days", type=int, default=2, help="replay the first N days of 2013 (default: 2; the year: 365)"
    )
    parser.add_argument("--batches", type=int, default=8, help="cut them into N files, one a micro-batch")
    arguments = parser.parse_args()

    begin = pd.Timestamp("2013-01-01", tz=NEW_YORK).tz_convert("UTC")
    end = begin + pd.Timedelta(days=arguments.days)
    flights = flights_as_they_left()[["flight_id", "origin", "carrier", "delay", "entered"]]
    flights["left"] = flights["entered"]
    flights = flights[flights["entered"] < end]
    spark = start_spark()
    with tempfile.TemporaryDirectory(prefix="departures-") as name:
        folder = Path(name)
        write(flights, pd.date_range(begin, end, arguments.batches + 1), folder / "flights")
        last = panes(spark, LAST_20, folder, "last")
        equal = report(last, spark.read.parquet(str(folder / "flights")))
        hundreds = panes(spark, EVERY_100, folder, "hundreds").where("pane.timing = 'ON_TIME'")
        print("every 100 flights of a carrier:")
        for row in hundreds.orderBy("carrier", "window.start").limit(4).collect():
            print(
                f"  {row.carrier} flights {row.window.start} to {row.window.end - 1}: {row.delay:.1f} minutes late on the mean"
            )
    return 0 if equal else 1


def panes(spark: SparkSession, pipeline: bm.Pipeline, folder: Path, name: str) -> DataFrame:
    """The panes of a query over the files, as a table."""
    path = str(folder / "flights")
    files = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1).parquet(path)
    query = (
        files.transform(pipeline)
        .writeStream.format("parquet")
        .option("path", str(folder / name))
        .option("checkpointLocation", str(folder / f"{name}-checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.read.parquet(str(folder / name))


def report(last: DataFrame, flights: DataFrame) -> bool:
    """Report delays, and compare all panes with Spark's own frames; whether they are equal."""
    frame = Window.partitionBy("origin").orderBy(*ORDER).rowsBetween(-19, 0)
    in_order = Window.partitionBy("origin").orderBy(*ORDER)
    theirs = flights.select(
        "origin", F.row_number().over(in_order).alias("end"), F.count("*").over(frame), F.avg("delay").over(frame)
    )
    ours = last.select("origin", F.col("window.end").cast("int"), "flights", "delay")
    print("the last 20 departures of each airport, at the end:")
    for row in last.groupBy("origin").agg(F.max_by("delay", "window.end").alias("delay")).orderBy("origin").collect():
        print(f"  {row.origin}: {row.delay:.2f} minutes late on the mean")
    mine, spark_s = (sorted(map(tuple, one.collect())) for one in (ours, theirs))
    equal = len(mine) == len(spark_s) and all(_same(a, b) for a, b in zip(mine, spark_s, strict=True))
    print(f"{'holds' if equal else 'FAILS'}: {len(mine)} panes, {len(spark_s)} frames of rowsBetween")
    return equal


def _same(pane: tuple[str, int, int, float | None], frame: tuple[str, int, int, float | None]) -> bool:
    """Equality, with means up to the order of summation."""
    ours, theirs = pane[3], frame[3]
    return pane[:3] == frame[:3] and (
        ours == theirs or (ours is not None and theirs is not None and abs(ours - theirs) < 1e-9)
    )


if __name__ == "__main__":
    sys.exit(main())
