"""A query whose beamish is a zip archive added to the session: ``python shipped.py ARCHIVE``, by a Python without beamish.

It needs the clock, so that Spark runs both of what it starts on the driver's machine: the state runner and the heartbeat source.
"""

# ruff: noqa: E402 - beamish is there once the archive is added
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .config("spark.sql.shuffle.partitions", 2)
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.addPyFile(sys.argv[1])

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import AfterAny, AfterCount, AfterProcessingTime, Repeatedly

assert ".zip" in bm.__file__
folder = Path(tempfile.mkdtemp())
(folder / "in").mkdir()
(folder / "in" / "0.csv").write_text("2024-05-01T10:05:00Z,north\n")
rows = spark.readStream.schema("ts timestamp, shop string").csv(str(folder / "in"))
sales = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("shop")
    .window(bm.FixedWindows("1 hour"))
    .trigger(Repeatedly(AfterAny(AfterCount(1), AfterProcessingTime("1 hour"))))
    .accumulating()
    .accumulate(n=Count())
)
found: list[Any] = []
query = rows.transform(sales).writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
assert [(row.shop, row.n) for row in found] == [("north", 1)], found
