"""Merges and joins on Spark: the same as in process."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import CoGroup, Count, FullOuterJoin, InnerJoin, LeftOuterJoin, RightOuterJoin, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always
from tests.agreement import differences
from tests.cost import deep_after
from tests.declared_options import evolve
from tests.spark.conftest import Files


def merged(orders=None, clicks=None):
    return bm.merge(
        orders=bm.Pipeline().event_time("at", orders or bm.BoundedOutOfOrderness(0)).key_by("user"),
        clicks=bm.Pipeline().event_time("ts", clicks or bm.BoundedOutOfOrderness(0)).key_by("uid"),
    )


def retracting(merge, **accumulations):
    return (
        merge.window(bm.FixedWindows(10))
        .trigger(AfterWatermark(early=AfterCount(1), late=AfterCount(1)))
        .allowed_lateness(5)
        .accumulating_and_retracting()
        .with_dropped()
        .accumulate(**accumulations)
    )


SCRIPT = (
    TestStream()
    .add([{"at": 1, "user": "ann", "amount": 5}, {"at": 2, "user": "bob", "amount": 7}], input="orders")
    .add([{"ts": 3, "uid": "ann", "page": "a"}, {"ts": 14, "uid": "cleo", "page": "b"}], input="clicks")
    .advance_watermark_to(12, input="orders")
    .advance_watermark_to(10, input="clicks")
    .add([{"ts": 4, "uid": "bob", "page": "c"}], input="clicks")  # late: the match of an outer row
)


@pytest.mark.parametrize("join", deep_after(1, [InnerJoin, LeftOuterJoin, RightOuterJoin, FullOuterJoin]))
def test_a_join_on_spark_agrees_with_an_in_process_run(spark, join):
    pipeline = retracting(merged(), pairs=join("orders", "clicks"))
    assert not differences(SCRIPT.on_spark(spark, pipeline, shards=2, partitions=1), pipeline.run(SCRIPT), pipeline)


def test_inputs_are_accumulated_together_on_spark_as_in_process(spark):
    both = {"all_": Count(), "spent": Sum("amount").of("orders"), "rows": CoGroup("orders", "clicks")}
    pipeline = retracting(merged(), **both)
    panes = SCRIPT.on_spark(spark, pipeline, restart_after=(2,), shards=2, partitions=1)
    assert not differences(panes, pipeline.run(SCRIPT), pipeline)


def test_the_fastest_input_moves_the_watermark_on_spark_as_in_process(spark):
    fastest = bm.merge(
        orders=bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)).key_by("user"),
        clicks=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("uid"),
        wait_for=bm.FASTEST_INPUT,
    )
    pipeline = retracting(fastest, n=Count())
    panes = SCRIPT.on_spark(spark, pipeline, restart_after=(3,), shards=2, partitions=1)
    assert not differences(panes, pipeline.run(SCRIPT), pipeline)


def test_an_idle_input_lets_the_other_continue_on_spark_as_in_process(spark):
    script = (
        TestStream()
        .add([{"at": 1, "user": "ann", "amount": 5}], input="orders")
        .add([{"ts": 3, "uid": "ann", "page": "a"}], input="clicks")
        .advance_watermark_to(5)
        .advance_processing_time_to(20)
        .advance_watermark_to(30, input="orders")
        .add([{"at": 22, "user": "ann", "amount": 6}], input="orders")
        .advance_processing_time_to(40)
        .add([{"ts": 31, "uid": "bob", "page": "b"}], input="clicks")
        .advance_processing_time_to(41)
    )
    pipeline = retracting(merged(clicks=bm.BoundedOutOfOrderness(0, idle_timeout=4)), n=Count())
    expected = pipeline.run(script)
    assert [pane.values for pane in expected if pane.timing == "ON_TIME"]
    panes = script.on_spark(spark, pipeline, restart_after=(4,), shards=2, partitions=1)
    assert not differences(panes, expected, pipeline)


TIMESTAMP = pa.timestamp("us", "UTC")


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


@pytest.fixture
def inputs(spark, tmp_path):
    """Two folders of files: three of orders, three of clicks."""
    orders = Files(spark, tmp_path / "orders", pa.schema({"at": TIMESTAMP, "user": pa.string(), "amount": pa.int64()}))
    clicks = Files(spark, tmp_path / "clicks", pa.schema({"ts": TIMESTAMP, "uid": pa.string(), "page": pa.string()}))
    for second in (1, 21, 61):
        orders.add({"at": at(second), "user": "ann", "amount": second}, {"at": at(5), "user": "bob", "amount": 1})
    for second in (2, 11, 31):
        clicks.add({"ts": at(second), "uid": "ann", "page": "a"})
    return orders, clicks


def rows_of(df):
    shown = df.selectExpr(
        "user", "cast(window.start as long) start", "pane.kind", "pane.timing", "spent", "seen"
    ).collect()
    return sorted(map(tuple, shown), key=repr)


@pytest.mark.parametrize("idle_timeout", [None, "1000 days"], ids=["Spark's watermark", "the shards'"])
def test_streams_run_at_the_least_watermark_of_the_inputs(inputs, tmp_path, spark, idle_timeout):
    """Batches run without a watermark, at 0.5 and at 9.5, that of clicks. At 21, that of orders, bob's last row would be late."""
    orders, clicks = inputs
    delay = bm.BoundedOutOfOrderness("1.5 seconds", idle_timeout=idle_timeout)
    pipeline = (
        merged(clicks=delay)
        .window(bm.FixedWindows(5))
        .with_dropped()
        .accumulate(spent=Sum("amount").of("orders"), seen=Count().of("clicks"))
    )
    panes = []
    query = (
        pipeline.apply(orders=orders.stream(), clicks=clicks.stream(), shards=2)
        .writeStream.foreachBatch(lambda batch, _: panes.extend(rows_of(batch)))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(panes, key=repr) == [
        ("ann", 0, "PANE", "ON_TIME", 1, 1),
        ("ann", 10, "PANE", "ON_TIME", None, 1),
        ("ann", 20, "PANE", "ON_TIME", 21, 0),
        ("bob", 5, "PANE", "ON_TIME", 3, 0),
    ]


def test_batches_give_the_final_panes(inputs, spark):
    orders, clicks = (spark.read.parquet(str(one.folder)) for one in inputs)
    pipeline = merged().window(bm.FixedWindows(60)).accumulate(pairs=FullOuterJoin("orders", "clicks"))
    rows = pipeline.apply(orders=orders, clicks=clicks).select("user", "pairs.orders.amount", "pairs.clicks.page")
    assert sorted(map(tuple, rows.collect()), key=repr) == [
        *[("ann", 1, "a")] * 3,
        *[("ann", 21, "a")] * 3,
        ("ann", 61, None),
        *[("bob", 1, None)] * 3,
    ]


def test_explain_describes_batch_and_stream(inputs, spark):
    orders, clicks = inputs
    pipeline = merged().window(bm.FixedWindows(60)).accumulate(pairs=FullOuterJoin("orders", "clicks"))
    stream = " ".join(pipeline.explain(orders=orders.stream(), clicks=clicks.stream()).split())
    assert "pairs struct<orders: struct<at: timestamp[us, tz=UTC], amount: int64>, clicks: struct<" in stream
    assert "when rows of orders or clicks stop, it stops" in stream
    batch = pipeline.explain(**{name: spark.read.parquet(str(one.folder)) for name, one in pipeline_inputs(inputs)})
    assert "one pass of the engine per shard" in batch
    assert not [line for line in batch.splitlines() if line.startswith("watermark")]


def test_dropped_rows_name_their_input(inputs, spark):
    orders, clicks = (spark.read.parquet(str(one.folder)) for one in inputs)
    pipeline = merged().window(bm.FixedWindows(60)).with_dropped().accumulate(rows=Count())
    untimed = clicks.limit(1).selectExpr("cast(null as timestamp) ts", "uid", "page")
    rows = bm.dropped(pipeline.apply(orders=orders, clicks=untimed)).select("reason", "orders", "clicks.page").collect()
    assert list(map(tuple, rows)) == [("null_event_time", None, "a")]


def pipeline_inputs(inputs):
    return zip(("orders", "clicks"), inputs, strict=True)


def test_a_stream_does_not_merge_with_a_batch(inputs, spark):
    orders, clicks = inputs
    pipeline = merged().window(bm.FixedWindows(60)).accumulate(rows=Count())
    with pytest.raises(bm.PipelineError, match="orders streams, clicks does not"):
        pipeline.apply(orders=orders.stream(), clicks=spark.read.parquet(str(clicks.folder)))
    with pytest.raises(bm.PipelineError, match=r"apply\(clicks=None\)"):
        pipeline.apply(orders=orders.stream())


def test_keys_of_two_types_do_not_merge(inputs, spark):
    orders, clicks = (spark.read.parquet(str(one.folder)) for one in inputs)
    pipeline = merged().window(bm.FixedWindows(60)).accumulate(rows=Count())
    with pytest.raises(bm.ColumnError, match=r"clicks: key_by\('uid'\): is int32, and orders's 'user' is string"):
        pipeline.apply(orders=orders, clicks=clicks.withColumn("uid", clicks.uid.cast("int")))


@pytest.mark.deep
def test_a_stage_after_a_join_on_spark_agrees_with_an_in_process_run(spark):
    joined = retracting(merged(), pairs=LeftOuterJoin("orders", "clicks"))
    chain = evolve(joined, with_dropped=False).then(
        bm.Pipeline().key_by().trigger(Always()).accumulating().accumulate(rows=Count())
    )
    panes = SCRIPT.on_spark(spark, chain, shards=2, partitions=1)
    assert panes
    assert not differences(panes, chain.run(SCRIPT), chain)


def test_batches_run_the_stages_after_a_join(inputs, spark):
    orders, clicks = (spark.read.parquet(str(one.folder)) for one in inputs)
    joined = merged().window(bm.FixedWindows(60)).accumulate(pairs=FullOuterJoin("orders", "clicks"))
    chain = joined.then(bm.Pipeline().key_by("user").accumulate(rows=Count()))
    rows = chain.apply(orders=orders, clicks=clicks).select("user", "window.start", "rows").collect()
    assert sorted((user, count) for user, _, count in rows) == [("ann", 1), ("ann", 6), ("bob", 3)]


def test_an_input_without_rows_runs_on_spark_as_in_process(spark):
    pipeline = retracting(merged(), pair=FullOuterJoin("orders", "clicks"))
    script = TestStream((*SCRIPT.events[:1], *SCRIPT.events[2:4])).add([], input="clicks")
    expected = pipeline.run(script)
    assert [pane.values["pair"]["clicks"] for pane in expected] == [None] * len(expected) != []
    assert not differences(script.on_spark(spark, pipeline, shards=2, partitions=1), expected, pipeline)


WITHIN = bm.Within("20 seconds", of="orders", after="10 seconds")


def test_rows_at_most_a_span_apart_are_joined_on_spark_as_in_process(spark):
    pipeline = retracting(merged(), pair=FullOuterJoin("orders", "clicks")).window(WITHIN)
    expected = pipeline.run(SCRIPT)
    assert {pane.values["pair"]["orders"] is None for pane in expected if pane.kind is bm.PaneKind.PANE} == {
        True,
        False,
    }
    assert not differences(
        SCRIPT.on_spark(spark, pipeline, restart_after=(2,), shards=2, partitions=1), expected, pipeline
    )


def test_batches_of_rows_at_most_a_span_apart_are_sparks_own_range_join(inputs, spark):
    orders, clicks = (spark.read.parquet(str(one.folder)) for one in inputs)
    pipeline = merged().window(WITHIN).accumulate(pair=InnerJoin("orders", "clicks"))
    found = pipeline.apply(orders=orders, clicks=clicks).select("user", "pair.orders.at", "pair.clicks.ts")
    near = "user <=> uid AND at BETWEEN ts - INTERVAL 20 SECONDS AND ts + INTERVAL 10 SECONDS"
    expected = orders.join(clicks, F.expr(near)).select("user", "at", "ts")
    rows = [sorted(map(tuple, df.collect()), key=repr) for df in (found, expected)]
    assert rows[0] == rows[1] != []


@pytest.mark.deep
def test_conditions_of_inputs_on_spark_agree_with_in_process_runs(spark):
    large, of_page = pc.field("amount") > 5, pc.field("page") != "a"
    inputs = merged().flow.inputs
    pipeline = bm.merge(
        orders=bm.Pipeline().event_time("at", inputs[0].watermark).key_by("user").where(large),
        clicks=bm.Pipeline().event_time("ts", inputs[1].watermark).key_by("uid").where(of_page),
    )
    pipeline = retracting(pipeline, spent=Sum("amount").of("orders"), clicks=Count().of("clicks"))
    panes = SCRIPT.on_spark(spark, pipeline, restart_after=(2,), shards=2, partitions=1)
    assert not differences(panes, pipeline.run(SCRIPT), pipeline)


@pytest.mark.parametrize("streams", [True, False])
def test_an_as_of_join_on_spark_applies_the_conditions_of_its_inputs(spark, streams):
    orders = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)).where(pc.field("amount") > 5)
    rates = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user").where(pc.field("kind") == "web")
    pipeline = bm.as_of_join(orders=orders, rates=rates.versions("1 day", values=["rate"]))
    changes = [{"ts": 1, "user": "ann", "rate": 1, "kind": "web"}, {"ts": 2, "user": "ann", "rate": 2, "kind": "shop"}]
    rows = [{"at": 3, "user": "ann", "amount": 5}, {"at": 4, "user": "ann", "amount": 6}]
    script = TestStream().add(changes, input="rates").add(rows, input="orders").advance_watermark_to(9)
    if streams:
        panes = script.on_spark(spark, pipeline, shards=2, partitions=1)
        assert not differences(panes, pipeline.run(script), pipeline)
        return
    frames = {"rates": spark.createDataFrame(changes), "orders": spark.createDataFrame(rows)}
    frames = {
        name: df.withColumn("ts" if name == "rates" else "at", F.timestamp_seconds("ts" if name == "rates" else "at"))
        for name, df in frames.items()
    }
    assert "one pass of the engine" in pipeline.explain(**frames)
    assert [(row.amount, row.rates.rate) for row in pipeline.apply(**frames).collect()] == [(6, 1)]
