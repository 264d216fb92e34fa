"""Run by test_connect.py in a separate process: Spark Connect and a classic session cannot share one.

SPARK_TESTING lets the server take any free port. Each part that passed prints a line.
"""

import os
import sqlite3
import sys
import tempfile
import traceback
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import beamish as bm
from beamish.accumulations import Count, LeftOuterJoin, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Always
from beamish.watching import BatchCounts
from tests.agreement import differences
from tests.conftest import quick_settings
from tests.kinds.versions.test_on_spark import SCRIPT as AS_OF
from tests.kinds.versions.test_on_spark import join, rate
from tests.pages import run_page
from tests.spark.test_flow import TREES

PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0, max_future="1 day", idle_timeout="1 hour"))
    .key_by("team")
    .window(bm.Sessions(5))
    .trigger(AfterWatermark(early=AfterProcessingTime("1 hour")))
    .accumulating()
    .accumulate(plays=Count())
    .suppress(bm.UntilWindowCloses())
)
SCRIPT = TestStream().add([{"ts": 1, "team": "red"}, {"ts": 2, "team": "red"}]).advance_watermark_to(60)


CHAIN = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .trigger(Always())
    .accumulating_and_retracting()
    .accumulate(plays=Count())
    .then(bm.Pipeline().trigger(Always()).accumulating_and_retracting().accumulate(teams=Count(), plays=Sum("plays")))
)
CHAIN_SCRIPT = TestStream().add([{"ts": 1, "team": "red"}, {"ts": 2, "team": "blue"}]).add([{"ts": 3, "team": "red"}])
MERGE = (
    bm.merge(
        orders=bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)).key_by("user"),
        clicks=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("uid"),
    )
    .window(bm.FixedWindows(10))
    .trigger(AfterWatermark(early=AfterCount(1), late=AfterCount(1)))
    .allowed_lateness(20)
    .accumulating_and_retracting()
    .accumulate(pair=LeftOuterJoin("orders", "clicks"))
)
MERGE_SCRIPT = (
    TestStream()
    .add([{"at": 1, "user": "ann", "amount": 5}], input="orders")
    .advance_watermark_to(12)
    .add([{"ts": 3, "uid": "ann"}], input="clicks")
)


def pipeline(spark):
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


def changelog(spark):
    """Panes as changes, on the way and at rest; changes as rows."""
    with tempfile.TemporaryDirectory() as folder:
        at = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 1, 3)]
        for number, ts in enumerate(at):
            Path(folder, "input").mkdir(exist_ok=True)
            rows = pa.table({"ts": [ts], "team": ["red"], "_change_type": ["insert"]})
            pq.write_table(rows, f"{folder}/input/{number}.parquet")
            os.utime(f"{folder}/input/{number}.parquet", (1_700_000_000 + number,) * 2)
        batch = spark.read.parquet(f"{folder}/input")
        stream = spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/input")
        counts = CHAIN.flow.inputs[0].flow
        panes = bm.Pipeline(counts).from_changelog().apply(stream)
        for df, name in ((panes, "panes"), (bm.changelog(panes, "debezium"), "debezium")):
            writer = df.writeStream.option("path", f"{folder}/{name}").option(
                "checkpointLocation", f"{folder}/c-{name}"
            )
            writer.trigger(availableNow=True).start().awaitTermination()
        stored = spark.read.parquet(f"{folder}/panes")
        ops = sorted(row["op"] for row in spark.read.parquet(f"{folder}/debezium").collect())
        assert ops == sorted(row["op"] for row in bm.changelog(stored, "debezium").collect()) == ["c", "c", "u", "u"], (
            ops
        )
        assert bm.changelog(stored, "upsert").count() == bm.changelog(stored, "kafka").count() == 4
        for format_ in ("spark", "flink", "diff"):
            assert bm.changelog(stored, format_).count() == 6
        assert sorted(row["plays"] for row in bm.live(stored).collect()) == [1, 2]


def sinks(spark):
    """A table that is kept, by a pipeline that is told what it would ask Spark, and what it counts."""
    counts = bm.Pipeline(CHAIN.flow.inputs[0].flow)
    with tempfile.TemporaryDirectory() as folder:
        rows = [{"ts": datetime(2024, 1, 1, tzinfo=UTC), "team": team} for team in ("red", "blue", "red", None)]
        Path(folder, "input").mkdir()
        pq.write_table(pa.Table.from_pylist(rows), f"{folder}/input/0.parquet")
        schema = "ts timestamp, team string"
        stream = spark.readStream.schema(schema).parquet(f"{folder}/input")
        panes = bm.observe(counts.apply(stream, schema=schema, shards=2, streaming=True))
        writer = panes.writeStream.foreachBatch(bm.sinks.sql(f"sqlite:///{folder}/tables.db", "plays"))
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
        query.awaitTermination()
        with closing(sqlite3.connect(f"{folder}/tables.db")) as database:
            found = database.execute("SELECT team, plays FROM plays ORDER BY 1").fetchall()
        assert found == [(None, 1), ("blue", 1), ("red", 2)], found
        first, *_ = query.recentProgress
        counted = BatchCounts.read(first, "beamish")
        assert (counted.counts["rows"], counted.counts["panes_early"]) == (4, 3), counted
        assert sum(shard["live_windows"] for shard in counted.shards.values()) == 3, counted


def connectors(spark):
    """The server's connectors count."""
    with pytest.raises(bm.SparkSetupError, match="no connector 'kafka'"):
        bm.sinks.kafka("host:9092", "plays")


def duplicates(spark):
    """Rows, each once, and those that were left out."""
    once = (
        bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).deduplicate("team", within="1 day").with_dropped()
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            {"ts": datetime(2024, 1, 1, 0, 0, second, tzinfo=UTC), "team": team} for second, team in enumerate("aba")
        ]
        Path(folder, "input").mkdir()
        pq.write_table(pa.Table.from_pylist(rows), f"{folder}/input/0.parquet")
        stream = spark.readStream.schema("ts timestamp, team string").parquet(f"{folder}/input").transform(once)
        writer = stream.writeStream.option("path", f"{folder}/out").option("checkpointLocation", f"{folder}/checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()
        out = spark.read.parquet(f"{folder}/out")
        assert sorted(row["team"] for row in bm.panes(out).collect()) == ["a", "b"]
        assert [(row["reason"], row["team"]) for row in bm.dropped(out).collect()] == [("duplicate", "a")]


def chain(spark):
    expected = CHAIN.run(CHAIN_SCRIPT)
    assert [pane.kind for pane in expected] == ["PANE", "RETRACTION", "PANE"]
    assert not differences(CHAIN_SCRIPT.on_spark(spark, CHAIN), expected, CHAIN)


def merge(spark):
    expected = MERGE.run(MERGE_SCRIPT)
    assert [pane.values["pair"]["clicks"] for pane in expected][-2:] == [None, {"ts": 3}]
    assert not differences(MERGE_SCRIPT.on_spark(spark, MERGE), expected, MERGE)


def tree(spark):
    pipeline, script = TREES["two aggregates by key and window"]
    script = TestStream(script.events[:4])
    expected = pipeline.run(script)
    assert {str(pane.kind) for pane in expected} == {"PANE", "RETRACTION"}
    assert not differences(script.on_spark(spark, pipeline), expected, pipeline)


def as_of(spark):
    joined, script = join(how="left").accumulating_and_retracting(), TestStream(AS_OF.events[:4])
    begins = [rate(1, "EUR", 0.5), rate(2, "CHF", 9.0)]
    expected = joined.run(script, initial=begins)
    assert {str(pane.kind) for pane in expected} == {"PANE", "RETRACTION"}
    with tempfile.TemporaryDirectory() as folder:
        found = script.on_spark(spark, joined, initial=begins, checkpoint=folder)
        assert not differences(found, expected, joined)
        held = joined.state(spark, f"{folder}/checkpoint").versions(as_of=11).collect()
    assert sorted((row.cur, row.rate) for row in held) == [("CHF", 9.0), ("EUR", 1.1), ("USD", 2.0)]


def notebook(spark):
    """The cells of docs/notebooks.md: the one that makes a session gets the one there is."""
    page = Path(__file__).parents[2] / "docs" / "notebooks.md"
    assert run_page(page.name, page.read_text(), without=".master(")
    assert not spark.streams.active


def main():
    settings = {**quick_settings(), "spark.python.daemon.module": "beamish.spark.daemon"}
    spark = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
    assert "connect" in type(spark).__module__
    for part in sys.argv[1:]:
        try:
            globals()[part](spark)
        except Exception:  # noqa: BLE001 - the other parts are to run as well
            traceback.print_exc()
        else:
            print(part)
    spark.stop()


if __name__ == "__main__":
    main()
