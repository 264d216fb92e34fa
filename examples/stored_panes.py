"""A table of panes from one query, aggregated by another: hours from ten minutes, late corrections included.

The first query writes all its panes, retractions too, to a parquet table: a ledger. The second streams that table, on another day
or another cluster. ``from_panes()`` declares its rows as panes, so a RETRACTION removes the pane that it repeats from the hour,
and the next pane adds the correct one. (Without it the pipeline is rejected: each retraction would count as another pane.) Its
event time is the panes' ``timestamp``, its allowed lateness that of the first query, the maximum delay of a correction.

In one query it is ``tens.then(hours)`` with ``hours`` without ``from_panes()`` and ``event_time``.

    python examples/stored_panes.py
"""

import os
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.triggers import AfterWatermark, Always

tens = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("shop")
    .window(bm.FixedWindows("10 minutes"))
    .trigger(AfterWatermark(late=Always()))
    .allowed_lateness("1 day")
    .accumulating_and_retracting()
    .accumulate(euros=Sum("euros"))
)
hours = (
    bm.Pipeline()
    .from_panes()
    .event_time("timestamp", bm.BoundedOutOfOrderness(0))
    .key_by("shop")
    .window(bm.FixedWindows("1 hour"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("1 day")
    .accumulating_and_retracting()
    .accumulate(sold_in=Count(), euros=Sum("euros"), best=Max("euros"))
)

FILES = [
    "2024-05-01T10:05:00Z,north,40\n2024-05-01T10:07:00Z,south,10\n2024-05-01T10:34:00Z,north,30\n",
    "2024-05-01T11:05:00Z,south,20\n2024-05-01T11:25:00Z,south,1\n",  # the hour from 10:00 is over
    "2024-05-01T10:09:00Z,north,5\n2024-05-01T10:08:00Z,south,2\n",  # late: both ten minutes are corrected
    "2024-05-01T12:30:00Z,south,7\n",
]

spark = (
    SparkSession.builder.master("local[2]")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .config("spark.sql.shuffle.partitions", 2)
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "in").mkdir()
    for number, rows in enumerate(FILES):
        path = folder / "in" / f"{number}.csv"
        path.write_text(rows)
        os.utime(path, (number, number))  # Spark reads files in the order of their modification times

    def written(panes: DataFrame, to: str) -> DataFrame:
        """The output of a query, as a table."""
        panes.writeStream.option("checkpointLocation", str(folder / f"{to}-checkpoint")).format("parquet").option(
            "path", str(folder / to)
        ).trigger(availableNow=True).start().awaitTermination()
        return spark.read.parquet(str(folder / to))

    sales = spark.readStream.schema("ts timestamp, shop string, euros int").option("maxFilesPerTrigger", 1)
    stored = written(sales.csv(str(folder / "in")).transform(tens), "tens")

    print("ten minutes, all that was ever said:")
    for row in stored.orderBy("shop", "pane.sequence").collect():
        print(f"  {row.shop} {row.window.start:%H:%M} {row.pane.kind:10} {row.euros}")

    again = spark.readStream.schema(stored.schema).parquet(str(folder / "tens"))
    by_hour = written(again.transform(hours), "hours")
    print("hours, what holds:")
    for row in bm.live(by_hour).orderBy("shop", "window.start").collect():
        hour = f"{row.shop} {row.window.start:%H:%M}"
        print(f"  {hour} {row.euros} euros in {row.sold_in} ten minutes, at best {row.best}")

    print("the same, of the live panes, by Spark:")
    by_spark = bm.live(stored).groupBy("shop", F.date_trunc("hour", "window.start").alias("hour")).agg(F.sum("euros"))
    for row in by_spark.orderBy("shop", "hour").collect():
        print(f"  {row.shop} {row.hour:%H:%M} {row[2]} euros")
