"""Dropped rows: which rows were too late, why, and by how much.

``with_dropped()`` emits them from the same query. ``bm.panes`` and ``bm.dropped`` split a batch of the output, here
into two folders (``foreachBatch``).

    python examples/late_rows.py
"""

import os
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import beamish as bm
from beamish.accumulations import Sum

litres = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("pump")
    .window(bm.FixedWindows("10 minutes"))
    .with_dropped()
    .accumulate(litres=Sum("litres"))
)

FILES = [
    "2024-05-01T10:01:00Z,north,40\n2024-05-01T10:15:00Z,north,30\n",
    "2024-05-01T10:09:00Z,north,25\n2024-05-01T10:16:00Z,south,50\n,south,5\n",  # 10:09 is too late; one has no time
    "2024-05-01T10:30:00Z,south,20\n",
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

    def split(batch: DataFrame, _: int) -> None:
        """Write a batch of the output into two folders."""
        batch.persist()
        bm.panes(batch).write.mode("append").parquet(str(folder / "panes"))
        bm.dropped(batch).write.mode("append").parquet(str(folder / "dropped"))
        batch.unpersist()

    schema = "ts timestamp, pump string, litres int"
    rows_in = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).csv(str(folder / "in"))
    rows_in.transform(litres).writeStream.foreachBatch(split).option(
        "checkpointLocation", str(folder / "checkpoint")
    ).trigger(availableNow=True).start().awaitTermination()

    panes = spark.read.parquet(str(folder / "panes"))
    panes.select("pump", "window.start", "litres", "pane.timing").orderBy("start", "pump").show()
    dropped = spark.read.parquet(str(folder / "dropped"))
    dropped.selectExpr("reason", "late_by / 60e6 as minutes_late", "ts", "pump", "litres").orderBy("reason").show()
