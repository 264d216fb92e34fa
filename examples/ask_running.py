"""Lookups in a running query: an airport's last departures, and their flights.

The query counts every three departures of an airport, and keeps the latest two windows of each. While it runs,
``pipeline.state(spark, checkpoint)`` reads its last committed batch without disturbing it; with ``batch=`` an earlier one.

    python examples/ask_running.py
"""

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import beamish as bm
from beamish.accumulations import Collect, Mean
from beamish.triggers import Always

departures = (
    bm.Pipeline()
    .key_by("airport")
    .window(bm.CountWindows(3, order_by="minute"))
    .trigger(Always())
    .allowed_lateness(rows=1000)
    .retain(windows=2)
    .accumulating()
    .accumulate(flights=Collect("flight"), delay=Mean("delay"))
)

BATCHES = [
    "JFK,1,AA1,10\nJFK,2,B62,20\nLGA,3,DL3,0\n",
    "JFK,4,AA4,30\nJFK,5,B65,40\nJFK,6,AA6,-10\n",
    "JFK,7,B67,5\nLGA,8,DL8,60\nJFK,9,AA9,15\n",
]

spark = (
    SparkSession.builder.master("local[2]")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .config("spark.sql.shuffle.partitions", 2)
    .getOrCreate()
)

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "in").mkdir()
    flights = spark.readStream.schema("airport string, minute int, flight string, delay int").csv(str(folder / "in"))
    query = (
        flights.transform(departures)
        .writeStream.format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    for number, rows in enumerate(BATCHES):
        (folder / f"{number}.csv").write_text(rows)
        (folder / f"{number}.csv").rename(folder / "in" / f"{number}.csv")  # atomic rename
        query.processAllAvailable()

    state = departures.state(spark, folder / "checkpoint")
    print(f"the query runs: {query.isActive}; of JFK it keeps")
    for row in state.windows(key={"airport": "JFK"}).collect():
        print(
            f"  departures {row.window.start} to {row.window.end - 1}: {', '.join(row.flights)}, {row.delay:.1f} minutes late"
        )
    print("its flights from the fifth departure on")
    for row in state.rows(4, key={"airport": "JFK"}).collect():
        print(f"  {row.number}: {row.row.flight}")
    first = departures.state(spark, folder / "checkpoint", batch=0)
    print("after its first batch it kept")
    for row in first.windows().collect():
        print(f"  {row.airport} {row.window.start} to {row.window.end - 1}: {', '.join(row.flights)}")
    query.stop()
