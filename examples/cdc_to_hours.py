"""Hourly figures from changes of a database table, correct after every batch: inserts, updates and deletes.

A shop's orders arrive as Debezium records, with the row before and after. An order may be changed or cancelled long after its
hour: the old row is retracted from that hour's figures, and the new one added. ``bm.live`` reads the final figures, which equal a
batch over the final table.

    python examples/cdc_to_hours.py
"""

import json
import os
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Sum, TopN
from beamish.triggers import AfterWatermark, Always

by_hour = (
    bm.Pipeline()
    .from_changelog("debezium")
    .event_time("ordered", bm.BoundedOutOfOrderness("10 minutes"))
    .window(bm.FixedWindows("1 hour"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("7 days")  # maximum age of an order that may still change
    .accumulating_and_retracting()
    .only_updated_panes()
    .accumulate(orders=Count(), euros=Sum("euros"), largest=TopN(2, "euros"))
)


Row = dict[str, object]


def order(number: int, time: str, euros: int) -> Row:
    """A row of the table."""
    return {"id": number, "ordered": f"2024-05-01T{time}:00Z", "euros": euros}


FIRST, SECOND, THIRD = order(1, "09:05", 20), order(2, "09:40", 35), order(3, "10:15", 50)
BATCHES: list[list[tuple[str, Row | None, Row | None]]] = [
    [("c", None, FIRST), ("c", None, SECOND)],
    [("c", None, THIRD), ("u", SECOND, order(2, "09:40", 5))],  # a price is corrected
    [("d", FIRST, None), ("u", THIRD, order(3, "09:55", 50))],  # one is cancelled, one gets another time
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
    (folder / "topic").mkdir()
    for number, batch in enumerate(BATCHES):
        path = folder / "topic" / f"{number}.json"
        path.write_text("\n".join(json.dumps({"op": op, "before": was, "after": now}) for op, was, now in batch))
        os.utime(path, (number, number))  # Spark reads files in the order of their modification times

    row = "struct<id: int, ordered: timestamp, euros: int>"
    stream = spark.readStream.schema(f"op string, before {row}, after {row}").option("maxFilesPerTrigger", 1)
    query = stream.json(str(folder / "topic")).transform(by_hour).writeStream.option("path", str(folder / "panes"))
    query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()

    panes = spark.read.parquet(str(folder / "panes"))
    hour = F.date_format("window.start", "HH:mm").alias("hour")
    print("what came, in order:")
    panes.orderBy("pane.sequence").select("pane.change", hour, "orders", "euros", "largest").show()
    print("what holds:")
    bm.live(panes).select(hour, "orders", "euros", "largest").orderBy("hour").show()
