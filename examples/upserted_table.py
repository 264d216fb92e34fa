"""A table that is correct at every moment: visits per user and session, in SQLite by `bm.sinks.sql`.

Sessions grow and merge as clicks arrive: rows are updated, and the rows of merged sessions are deleted. The table is printed
after each batch. Each batch is written twice: a replayed batch, as after a crash, changes nothing.

    python examples/upserted_table.py
"""

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import Always

visits = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("user")
    .window(bm.Sessions("10 minutes"))
    .trigger(Always())
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .accumulate(clicks=Count())
)

FILES = [
    "2024-05-01T10:00:00Z,ann\n2024-05-01T10:15:00Z,ann\n2024-05-01T10:02:00Z,bob\n",
    "2024-05-01T10:07:00Z,ann\n",  # merges ann's two visits
    "2024-05-01T10:20:00Z,bob\n",
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
    table = bm.sinks.sql(f"sqlite:///{folder}/visits.db", "visits")

    def keep(batch: DataFrame, number: int) -> None:
        """Write the batch to the table, twice, and show it: as after a crash, the second time changes nothing."""
        batch.persist()
        table(batch, number)
        table(batch, number)
        batch.unpersist()
        with closing(sqlite3.connect(folder / "visits.db")) as database:
            rows = database.execute("SELECT user, window_start, window_end, clicks FROM visits ORDER BY 1, 2")
            print(f"after batch {number}")
            for user, start, end, clicks in rows:
                print(f"  {user}  {start[11:16]} to {end[11:16]}  {clicks} clicks")

    clicks = (
        spark.readStream.schema("ts timestamp, user string").option("maxFilesPerTrigger", 1).csv(str(folder / "in"))
    )
    clicks.transform(visits).writeStream.foreachBatch(keep).option(
        "checkpointLocation", str(folder / "checkpoint")
    ).trigger(availableNow=True).start().awaitTermination()
