"""Hourly figures as records for a compacted Kafka topic: the latest figures per hour, tombstones for deletions.

``bm.changelog(panes, "kafka")`` has the two columns of Spark's Kafka sink. Here they are written to memory, and read like a
consumer that reads the topic from its start: the last record of a key counts, unless it is older than another one (a batch that
Spark wrote twice). ``_sequence`` orders them.

    python examples/kafka_changelog.py
"""

import json
import os
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import AfterWatermark, Always

visits = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("10 minutes"))
    .key_by("user")
    .window(bm.Sessions("30 minutes"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("1 day")
    .accumulating_and_retracting()
    .only_updated_panes()
    .accumulate(clicks=Count())
)

FILES = [
    "2024-05-01T09:00:00Z,ann\n2024-05-01T09:40:00Z,ann\n",  # two visits
    "2024-05-01T09:20:00Z,ann\n2024-05-01T09:50:00Z,bob\n",  # a late click between them: they are one
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

with tempfile.TemporaryDirectory() as folder:
    for number, rows in enumerate(FILES):
        path = Path(folder, f"{number}.csv")
        path.write_text(rows)
        os.utime(path, (number, number))  # Spark reads files in the order of their modification times
    clicks = spark.readStream.schema("ts timestamp, user string").option("maxFilesPerTrigger", 1).csv(folder)
    records = bm.changelog(clicks.transform(visits), "kafka")  # .writeStream.format("kafka").option("topic", ...)
    query = records.writeStream.format("memory").queryName("topic").trigger(availableNow=True).start()
    query.awaitTermination()

topic: dict[str, dict[str, object]] = {}
for key, value in spark.table("topic").collect():
    hours = json.loads(key)
    what = "a tombstone" if value is None else "a value"
    print(f"{hours['user']} {hours['window_start'][11:16]} to {hours['window_end'][11:16]}: {what}")
    if value is None:
        topic.pop(key, None)
    else:
        row = json.loads(value)
        if key not in topic or topic[key]["_sequence"] < row["_sequence"]:
            topic[key] = row
print("in the end:", ", ".join(sorted(f"{row['user']} with {row['clicks']} clicks" for row in topic.values())))
