"""Versioned tables and as-of joins as real micro-batches, on files, in batches and in checkpoints."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream

NOW = bm.BoundedOutOfOrderness(0)
RATES = bm.Pipeline().event_time("ts", NOW).key_by("cur").versions(100, deleted="gone")
ORDERS = bm.Pipeline().event_time("at", NOW)
RATE_TYPES = "ts timestamp, cur string, rate double, gone boolean"
ORDER_TYPES = "at timestamp, paid string, amount bigint"


def rate(ts, cur, rate, *, gone=False):
    return {"ts": ts, "cur": cur, "rate": rate, "gone": gone}


def order(at, paid, amount=1):
    return {"at": at, "paid": paid, "amount": amount}


def join(**options):
    return bm.as_of_join(orders=ORDERS, rates=RATES, on={"paid": "cur"}, **options)


SCRIPT = (
    TestStream()
    .add([rate(10, "EUR", 1.0), rate(5, "USD", 2.0)], input="rates")
    .add([order(12, "EUR"), order(25, "EUR", 2), order(25, None), order(7, "USD", 3)], input="orders")
    .advance_watermark_to(20)
    .add([rate(11, "EUR", 1.1), rate(21, "EUR", None, gone=True)], input="rates")
    .advance_watermark_to(30)
    .add([order(8, "USD", 4), order(31, "GBP")], input="orders")
    .add([rate(22, "EUR", 3.0), rate(None, "EUR", 3.0), rate(23, None, 3.0)], input="rates")
    .advance_watermark_to(200)
    .add([order(50, "EUR", 5)], input="orders")
)
TOTALS = (
    bm.Pipeline()
    .event_time("ts", NOW)
    .key_by("cur")
    .window(bm.GlobalWindow())
    .trigger(bm.triggers.Always())
    .accumulating_and_retracting()
    .timestamp_combiner(bm.TimestampCombiner.LATEST)
    .accumulate(total=Sum("rate"))
)
SHAPES = {
    "left, retracting": join(how="left", grace=3).accumulating_and_retracting().with_dropped(),
    "early": join(how="left", early=True).accumulating_and_retracting(),
    "the left's watermark alone": join(wait_for=bm.LEFT_INPUT, how="left").with_dropped(),
    "nearest, with panes as its table": bm.as_of_join(
        orders=ORDERS,
        rates=TOTALS.then(bm.Pipeline().key_by("cur").versions(100)),
        on={"paid": "cur"},
        how="left",
        direction="nearest",
        tolerance=9,
    )
    .accumulating_and_retracting()
    .with_dropped(),
    "at arrival": join(how="left", as_of="arrival").with_dropped(),
    "a stage after it": join(how="left", grace=3)
    .accumulating_and_retracting()
    .then(bm.Pipeline().key_by("paid").window(bm.FixedWindows(20)).accumulate(orders=Count(), spent=Sum("amount"))),
}


SAMPLE = ("nearest, with panes as its table",)  # the others in ``make test-deep``


@pytest.mark.parametrize(
    "pipeline",
    [pytest.param(join, id=name, marks=[] if name in SAMPLE else [pytest.mark.deep]) for name, join in SHAPES.items()],
)
def test_a_join_on_spark_with_a_restart_agrees_with_an_in_process_run(spark, by_key, pipeline):
    on_spark = SCRIPT.trace_on_spark(spark, pipeline, restart_after=(3,), shards=2, partitions=1)
    for (event, panes), (_, expected) in zip(on_spark, SCRIPT.trace(pipeline), strict=True):
        assert by_key(panes) == by_key(expected), event


def test_initial_rows_are_loaded_once(spark, by_key):
    begins = [rate(3, "EUR", 0.5), rate(40, "EUR", 4.0), rate(4, "CHF", 9.0)]
    script = TestStream().add([rate(10, "EUR", 1.0)]).add([rate(20, "EUR", 2.0), rate(20, "USD", 2.0)])
    on_spark = script.trace_on_spark(spark, RATES, restart_after=(0,), initial=begins, shards=2, partitions=1)
    expected = script.trace(RATES, initial=begins)
    assert [by_key(panes) for _, panes in on_spark] == [by_key(panes) for _, panes in expected]
    taken_back = [pane for _, panes in expected for pane in panes if pane.kind is bm.PaneKind.RETRACTION]
    assert [pane.values["rate"] for pane in taken_back] == [0.5, 1.0]


def instant(seconds):
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def frames(spark, rates, orders):
    of_rates = [(instant(row["ts"]), row["cur"], row["rate"], row["gone"]) for row in rates]
    of_orders = [(instant(row["at"]), row["paid"], row["amount"]) for row in orders]
    return spark.createDataFrame(of_rates, RATE_TYPES), spark.createDataFrame(of_orders, ORDER_TYPES)


RATE_ROWS = [rate(10, "EUR", 1.0), rate(30, "EUR", 3.0), rate(20, "EUR", 2.0), rate(40, "EUR", None, gone=True)]
ORDER_ROWS = [order(at, "EUR", at) for at in (5, 10, 25, 35, 45)] + [order(9, "USD"), order(9, None)]
MET = {(5, "EUR"): None, (10, "EUR"): 1.0, (25, "EUR"): 2.0, (35, "EUR"): 3.0, (45, "EUR"): None}


def met(rows):
    return {(row.amount, row.paid): row.rates and row.rates.rate for row in rows if row.paid == "EUR"}


def run(panes, folder, name):
    """Run a query over what is there; gives its rows so far."""
    writer = panes.writeStream.format("parquet").option("checkpointLocation", str(folder / f"{name}-checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / name))
    query.awaitTermination()
    return query


def test_available_now_joins_all_files_and_state_reads_the_table(spark, tmp_path):
    rates, orders = frames(spark, RATE_ROWS, ORDER_ROWS)
    last = frames(spark, [rate(100, "USD", 1.0)], [order(100, "USD")])
    for name, parts in (("rates", (rates, last[0])), ("orders", (orders, last[1]))):
        for part in parts:
            part.coalesce(1).write.mode("append").parquet(str(tmp_path / name))
    streams = {
        name: spark.readStream.schema(types).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / name))
        for name, types in (("rates", RATE_TYPES), ("orders", ORDER_TYPES))
    }
    pipeline = join(how="left")
    run(pipeline.apply(**streams), tmp_path, "joined")
    assert met(spark.read.parquet(str(tmp_path / "joined")).collect()) == MET
    state = pipeline.state(spark, tmp_path / "joined-checkpoint")
    held = sorted((row.cur, row.rate, row.valid_from.timestamp()) for row in state.versions().collect())
    assert held == [("EUR", 1.0, 10), ("EUR", 2.0, 20), ("EUR", 3.0, 30), ("USD", 1.0, 100)]
    assert [(row.cur, row.rate) for row in state.versions(as_of=25).collect()] == [("EUR", 2.0)]
    assert state.versions(as_of=50).collect() == []


def test_a_batch_gives_final_versions_and_matches_whatever_the_number_of_shards(spark):
    rates, orders = frames(spark, RATE_ROWS, ORDER_ROWS)
    for shards in (1, 3):
        rows = RATES.apply(rates, shards=shards).collect()
        found = sorted((row.rate, row.valid_from.timestamp(), row.valid_to.timestamp()) for row in rows)
        assert found == [(1.0, 10, 20), (2.0, 20, 30), (3.0, 30, 40)]
        assert all(row.pane.is_last and row.pane.timing == "ON_TIME" for row in rows)
        early = join(how="left", early=True, grace=50).accumulating_and_retracting()
        rows = early.apply(orders=orders, rates=rates, shards=shards).collect()
        assert met(rows) == MET
        assert len(rows) == len(ORDER_ROWS)


def test_a_batch_has_initial_rows(spark):
    rates, orders = frames(spark, RATE_ROWS, ORDER_ROWS)
    rest, first = rates.where("rate <> 2 OR gone"), rates.where("rate = 2")
    assert met(join(how="left").apply(orders=orders, rates=rest, initial=first).collect()) == MET


def test_invalid_initial_rows_are_rejected(spark):
    rates, orders = frames(spark, RATE_ROWS, ORDER_ROWS)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(bm.PipelineError, match="must be a batch DataFrame"):
        join().apply(orders=orders, rates=rates, initial=stream)
    with pytest.raises(bm.ColumnError, match="no column 'rate'"):
        join().apply(orders=orders, rates=rates, initial=rates.drop("rate"))
    with pytest.raises(bm.ColumnError, match="'rate' is string"):
        join().apply(orders=orders, rates=rates, initial=rates.withColumn("rate", rates.rate.cast("string")))
    with pytest.raises(bm.PipelineError, match="no such table"):
        join().apply(orders=orders, rates=rates, initial={"orders": rates})


def test_a_history_may_shrink_between_two_runs_and_not_grow(spark, by_key, tmp_path):
    script = TestStream().add([rate(10, "EUR", 1.0)]).add([rate(20, "EUR", 2.0)])
    shorter = bm.Pipeline().event_time("ts", NOW).key_by("cur").versions(50, deleted="gone")
    longer = bm.Pipeline().event_time("ts", NOW).key_by("cur").versions(101, deleted="gone")
    script.on_spark(spark, RATES, checkpoint=tmp_path, shards=2, partitions=1)
    script = script.add([rate(30, "EUR", 3.0)])
    script.on_spark(spark, shorter, checkpoint=tmp_path, shards=2, partitions=1)
    with pytest.raises(Exception, match="may only shrink"):
        script.add([rate(40, "EUR", 3.0)]).on_spark(spark, longer, checkpoint=tmp_path, shards=2, partitions=1)


def test_explain_of_versions_on_spark(spark):
    rates, orders = frames(spark, RATE_ROWS, ORDER_ROWS)
    bound = join().explain(orders=orders, rates=rates)
    assert "final rows, by Spark's own window function" in bound
    streams = {
        name: spark.readStream.format("rate").load().selectExpr(*columns)
        for name, columns in {
            "rates": ("timestamp ts", "'EUR' cur", "1D rate", "false gone"),
            "orders": ("timestamp at", "'EUR' paid", "value amount"),
        }.items()
    }
    words = " ".join(join(grace=5).explain(**streams).split())
    for part in (
        "the least of orders's and rates's",
        "orders and rates have no idle_timeout",
        "when the watermark is past its time by 5 seconds",
        "of a change cur, rate, gone",
        "each key's latest version",
    ):
        assert part in words
