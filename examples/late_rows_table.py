"""Figures and dropped rows in two SQLite tables, by one query.

``with_dropped()`` emits dropped rows beside the panes. ``bm.sinks.sql`` writes the panes of a batch and skips dropped rows; these
are written to a table with the batch number, so that a replayed batch replaces its own rows.

    python examples/late_rows_table.py
"""

import os
import sqlite3
import tempfile
from contextlib import closing
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
    figures = bm.sinks.sql(f"sqlite:///{folder}/pumps.db", "litres", fields=["timing"])

    def keep(batch: DataFrame, number: int) -> None:
        """Write panes to one table, and dropped rows to another."""
        batch.persist()
        figures(batch, number)
        late = bm.dropped(batch).selectExpr(
            "reason", "round(late_by / 60e6, 1)", "cast(ts as string)", "pump", "litres"
        )
        with closing(sqlite3.connect(folder / "pumps.db")) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS late (batch, reason, minutes_late, ts, pump, litres)")
            database.execute("DELETE FROM late WHERE batch = ?", (number,))
            database.executemany(
                "INSERT INTO late VALUES (?, ?, ?, ?, ?, ?)", [(number, *row) for row in late.collect()]
            )
        batch.unpersist()

    schema = "ts timestamp, pump string, litres int"
    rows_in = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).csv(str(folder / "in"))
    rows_in.transform(litres).writeStream.foreachBatch(keep).option(
        "checkpointLocation", str(folder / "checkpoint")
    ).trigger(availableNow=True).start().awaitTermination()

    with closing(sqlite3.connect(folder / "pumps.db")) as database:
        for row in database.execute("SELECT pump, window_start, litres, pane_timing FROM litres ORDER BY 2, 1"):
            print(*row)
        for row in database.execute("SELECT reason, minutes_late, ts, pump, litres FROM late ORDER BY 1"):
            print("late:", *row)
