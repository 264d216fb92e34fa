"""Upserts on Spark, as a stream that is restarted, and as a batch (rules/upserts.md)."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import Always
from tests.spark.writing import written

START = datetime(2024, 5, 1, tzinfo=UTC)
COLUMNS = {
    "at": pa.timestamp("us", tz="UTC"),
    "id": pa.int64(),
    "country": pa.string(),
    "euros": pa.int64(),
    "gone": pa.bool_(),
    "offset": pa.int64(),
}
ORDERS = (
    bm.Pipeline()
    .event_time("at", bm.BoundedOutOfOrderness(0))
    .key_by("id")
    .upserts(deleted="gone", sequence_by="offset")
)
BY_COUNTRY = ORDERS.then(
    bm.Pipeline()
    .key_by("country")
    .window(bm.FixedWindows("1 hour"))
    .trigger(Always())
    .allowed_lateness("1 day")
    .accumulating_and_retracting()
    .accumulate(orders=Count(), euros=Sum("euros"))
)


def order(offset, id_, country, euros, *, minute=0):
    gone = country is None
    at = None if gone else START + timedelta(minutes=minute)
    return {"at": at, "id": id_, "country": country, "euros": euros, "gone": gone, "offset": offset}


FIRST = [order(0, 7, "NO", 20), order(1, 8, "NO", 5), order(2, 9, "SE", 1, minute=70)]
SECOND = [order(5, 7, "SE", 20), order(4, 8, None, None), order(3, 9, "FI", 3), order(6, 9, "SE", 2, minute=70)]


def live(rows):
    return sorted((row.country, row.window.start.minute, row.orders, row.euros) for row in rows)


def test_a_stream_that_is_restarted_and_a_batch_have_the_totals_of_the_table(files, spark, tmp_path):
    events = files(**COLUMNS)
    events.add(*FIRST)
    written(events.stream().transform(BY_COUNTRY), tmp_path)
    events.add(*SECOND)
    out = written(events.stream().transform(BY_COUNTRY), tmp_path)
    now = live(bm.live(out).collect())
    assert now == [("SE", 0, 1, 2), ("SE", 0, 1, 20)]
    batch = spark.read.parquet(str(events.folder))
    assert live(batch.transform(BY_COUNTRY).collect()) == now
    table = batch.transform(ORDERS)
    assert sorted((row.id, row.country, row.euros, row.pane.change) for row in table.collect()) == [
        (7, "SE", 20, "INSERT"),
        (9, "SE", 2, "INSERT"),
    ]
    upserted = bm.changelog(table, "kafka").collect()
    assert sorted(row.key for row in upserted) == ['{"id":7}', '{"id":9}']
