"""Joins of changing tables on Spark, as a stream that is restarted, and as a batch (rules/joins.md#changing-tables)."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import beamish as bm
from beamish.accumulations import Sum
from beamish.triggers import Always
from tests.spark.conftest import Files
from tests.spark.writing import written

START = datetime(2024, 5, 1, tzinfo=UTC)
ORDER = {"at": pa.timestamp("us", tz="UTC"), "id": pa.int64(), "buyer": pa.string(), "euros": pa.int64()}
CUSTOMER = {"at": pa.timestamp("us", tz="UTC"), "name": pa.string(), "city": pa.string()}
SOURCE = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0))
JOINED = bm.table_join(
    orders=SOURCE.key_by("id").upserts(), customers=SOURCE.key_by("name").upserts(), on={"buyer": "name"}, how="outer"
)
BY_CITY = JOINED.then(
    bm.Pipeline()
    .key_by("customers.city")
    .window(bm.GlobalWindow())
    .trigger(Always())
    .accumulating_and_retracting()
    .accumulate(euros=Sum("orders.euros"))
)


def order(id_, buyer, euros, minute=0):
    return {"at": START + timedelta(minutes=minute), "id": id_, "buyer": buyer, "euros": euros}


def customer(name, city, minute=0):
    return {"at": START + timedelta(minutes=minute), "name": name, "city": city}


def pairs(rows):
    return sorted((row.buyer, row.orders and row.orders.euros, row.customers and row.customers.city) for row in rows)


def test_a_stream_that_is_restarted_and_a_batch_have_the_join_of_both_tables(spark, tmp_path):
    orders = Files(spark, tmp_path / "orders", pa.schema(ORDER))
    customers = Files(spark, tmp_path / "customers", pa.schema(CUSTOMER))
    orders.add(order(1, "ann", 5), order(2, "bob", 3), order(3, "eve", 1))
    customers.add(customer("ann", "Rome"), customer("bob", "Rome"), customer("joe", "Oslo"))

    def applied(pipeline):
        return pipeline.apply(orders=orders.stream(), customers=customers.stream())

    written(applied(JOINED), tmp_path)
    orders.add(order(1, "bob", 5, 1), order(3, "joe", 1, 1))
    customers.add(customer("bob", "Bern", 1))
    out = written(applied(JOINED), tmp_path)
    expected = [("ann", None, "Rome"), ("bob", 3, "Bern"), ("bob", 5, "Bern"), ("joe", 1, "Oslo")]
    assert pairs(bm.live(out).collect()) == expected
    batch = {name: spark.read.parquet(str(of.folder)) for name, of in (("orders", orders), ("customers", customers))}
    assert pairs(JOINED.apply(**batch).collect()) == expected
    totals = BY_CITY.apply(**batch).collect()
    assert sorted((row["customers.city"], row.euros) for row in totals if row.euros is not None) == [
        ("Bern", 8),
        ("Oslo", 1),
    ]
