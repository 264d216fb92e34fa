"""Query metrics for Prometheus: panes by timing, retractions, dropped rows by reason, live windows.

``bm.observe`` adds metrics to the query, ``bm.Listener`` exports them: here to a file for node_exporter's textfile collector;
with ``port=9095`` on a loopback port. ``bm.progress`` displays them.

    python examples/metrics.py
"""

import os
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import beamish as bm
from beamish.accumulations import Sum
from beamish.triggers import AfterWatermark, Always

litres = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("pump")
    .window(bm.FixedWindows("10 minutes"))
    .trigger(AfterWatermark(early=Always()))
    .accumulating_and_retracting()
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
    listener = bm.Listener(path=folder / "beamish.prom")
    spark.streams.addListener(listener)
    schema = "ts timestamp, pump string, litres int"
    rows_in = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).csv(str(folder / "in"))
    query = (
        bm.observe(rows_in.transform(litres))
        .writeStream.queryName("pumps")
        .format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "panes"))
    )
    query.awaitTermination()  # or bm.progress(query), which shows it meanwhile
    listener.wait(query)
    spark.streams.removeListener(listener)
    for line in (folder / "beamish.prom").read_text().splitlines():
        if line.startswith(("beamish_panes_total", "beamish_dropped_total", "beamish_live")) and not line.endswith(
            " 0.0"
        ):
            print(line)
