"""Rollups on Spark: a stream that is restarted, and a batch, have the groups of Spark's own GROUP BY ROLLUP (rules/key-sets.md)."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import Always
from tests.spark.writing import written

START = datetime(2024, 5, 1, tzinfo=UTC)
COLUMNS = {"at": pa.timestamp("us", tz="UTC"), "Country": pa.string(), "city": pa.string(), "euros": pa.int64()}
SALES = (
    bm.Pipeline()
    .event_time("at", bm.BoundedOutOfOrderness(0))
    .key_by(bm.Rollup("country", "city"))
    .window(bm.FixedWindows("1 hour"))
    .trigger(Always())
    .allowed_lateness("1 day")
    .accumulating_and_retracting()
    .accumulate(orders=Count(), euros=Sum("euros"))
)


def sale(minute, country, city, euros):
    return {"at": START + timedelta(minutes=minute), "Country": country, "city": city, "euros": euros}


def groups(rows):
    return sorted(
        (str(row.country), str(row.city), row.grouping_id, row.window.start, row.orders, row.euros) for row in rows
    )


def test_a_stream_and_a_batch_have_the_groups_of_sparks_rollup(files, spark, tmp_path):
    events = files(**COLUMNS)
    events.add(sale(1, "NO", "Oslo", 5), sale(2, "NO", None, 3), sale(3, None, None, 1))
    written(events.stream().transform(SALES), tmp_path)
    events.add(sale(4, "NO", "Oslo", 2), sale(70, "SE", "Lund", 4))
    out = written(events.stream().transform(SALES), tmp_path)
    rows = spark.read.parquet(str(events.folder)).withColumn("window", F.window("at", "1 hour"))
    aggregates = [F.grouping_id("Country", "city").alias("grouping_id"), F.count("*").alias("orders")]
    expected = [
        (str(row.Country), str(row.city), row.grouping_id, window.start, row.orders, row.euros)
        for (window,) in rows.select("window").distinct().collect()
        for row in rows.where(F.col("window.start") == window.start)
        .rollup("Country", "city")
        .agg(*aggregates, F.sum("euros").alias("euros"))
        .collect()
    ]
    assert groups(bm.live(out).collect()) == sorted(expected)
    assert groups(spark.read.parquet(str(events.folder)).transform(SALES).collect()) == sorted(expected)
