"""Arrays as rows and times of a column, on Spark: a stream that is restarted, and a batch (rules/stage-rows.md)."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import beamish as bm
from beamish.accumulations import Collect, Count, Max, Sum
from beamish.triggers import Always
from tests.spark.writing import written

START = datetime(2024, 5, 1, tzinfo=UTC)
COLUMNS = {
    "at": pa.timestamp("us", tz="UTC"),
    "order": pa.int64(),
    "item": pa.string(),
    "paid": pa.timestamp("us", tz="UTC"),
}
BY_ITEM = (
    bm.Pipeline()
    .event_time("at", bm.BoundedOutOfOrderness(0))
    .key_by("order")
    .window(bm.FixedWindows("1 hour"))
    .trigger(Always())
    .allowed_lateness("1 day")
    .accumulating_and_retracting()
    .accumulate(items=Collect("item"), paid=Max("paid"), n=Count())
    .explode("items")
    .then(
        bm.Pipeline()
        .event_time("paid", bm.BoundedOutOfOrderness("2 hours"))
        .key_by("items")
        .window(bm.FixedWindows("1 hour"))
        .trigger(Always())
        .allowed_lateness("1 day")
        .accumulating_and_retracting()
        .accumulate(orders=Count(), rows=Sum("n"))
    )
)


def row(minute, order, item, paid):
    return {
        "at": START + timedelta(minutes=minute),
        "order": order,
        "item": item,
        "paid": START + timedelta(minutes=paid),
    }


def live(rows):
    hours = (
        (row.items, (row.window.start - START.replace(tzinfo=None)).seconds // 3600, row.orders, row.rows)
        for row in rows
    )
    return sorted(hours)


def test_a_stream_that_is_restarted_and_a_batch_have_the_same_rows(files, spark, tmp_path):
    events = files(**COLUMNS)
    events.add(row(5, 1, "tea", 10), row(6, 2, "tea", 70), row(7, 2, "cup", 20))
    written(events.stream().transform(BY_ITEM), tmp_path)
    events.add(row(8, 1, "pot", 130), row(200, 3, "tea", 190))
    out = written(events.stream().transform(BY_ITEM), tmp_path)
    batch = spark.read.parquet(str(events.folder)).transform(BY_ITEM).collect()
    assert live(bm.live(out).collect()) == live(batch)
    assert [one[:1] + one[2:] for one in live(batch)] == [
        ("cup", 1, 2),
        ("pot", 1, 2),
        ("tea", 1, 2),
        ("tea", 1, 2),
        ("tea", 1, 1),
    ]
