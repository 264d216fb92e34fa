"""What test_connect.py runs in a process of its own: a session on Spark Connect does not share one with a classic one.

SPARK_TESTING lets the server take any free port.
"""

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, AfterWatermark

PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0, max_future="1 day", idle_timeout="1 hour"))
    .key_by("team")
    .window(bm.Sessions(5))
    .trigger(AfterWatermark(early=AfterProcessingTime("1 hour")))
    .accumulating()
    .accumulate(plays=Count())
)
SCRIPT = TestStream().add([{"ts": 1, "team": "red"}, {"ts": 2, "team": "red"}]).advance_watermark_to(60)


def main():
    spark = (
        SparkSession.builder.remote("local[2]")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    assert "connect" in type(spark).__module__
    assert SCRIPT.on_spark(spark, PIPELINE) == PIPELINE.run(SCRIPT) != []

    with tempfile.TemporaryDirectory() as folder:
        rows = [
            {"ts": datetime(2024, 1, 1, tzinfo=UTC), "team": "red"},
            {"ts": datetime(2024, 1, 2, tzinfo=UTC), "team": "blue"},
        ]
        Path(folder, "input").mkdir()
        pq.write_table(pa.Table.from_pylist(rows), f"{folder}/input/0.parquet")
        batch = spark.read.parquet(f"{folder}/input")
        assert {row["team"] for row in batch.transform(PIPELINE).collect()} == {"red", "blue"}

        panes = spark.readStream.schema(batch.schema).parquet(f"{folder}/input").transform(PIPELINE)
        sink = panes.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
        sink.option("path", f"{folder}/output").trigger(availableNow=True).start().awaitTermination()
        assert [row["team"] for row in spark.read.parquet(f"{folder}/output").collect()] == ["red"]
    spark.stop()
    sys.stdout.write("all went well\n")


if __name__ == "__main__":
    main()
