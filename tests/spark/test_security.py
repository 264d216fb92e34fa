"""SECURITY.md on Spark: hostile names of columns and values are data; workers keep values out of messages where they are told to."""

import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Max, Reduce, Sum
from tests.hostile import HOSTILE, fails

TIMED = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10))


def test_hostile_names_and_values_are_unchanged(spark, tmp_path):
    file = tmp_path / "touched"
    key, value, text = f"`id` $(touch {file})", "'); DROP TABLE x; --", '"; import os #'
    values = [one.format(file=file) for one in HOSTILE]
    df = spark.createDataFrame([(1, one, 1, one) for one in values], ["ts", key, value, text]).withColumn(
        "ts", F.timestamp_seconds("ts")
    )
    panes = df.transform(TIMED.key_by(key).accumulate(n=Count(), s=Sum(value), m=Max(text), own=Reduce(max, text)))
    rows = panes.toArrow().to_pylist()
    assert sorted((row[key], row["n"], row["s"], row["m"], row["own"]) for row in rows) == sorted(
        (one, 1, 1, one, one) for one in values
    )
    assert not file.exists()


@pytest.mark.parametrize("hides", [True, False])
def test_workers_keep_values_out_of_messages_if_the_session_is_configured_so(spark, monkeypatch, hides):
    # what spark.executorEnv.BEAMISH_HIDE_VALUES=1 puts there when a session begins
    monkeypatch.setitem(spark.sparkContext.environment, "BEAMISH_HIDE_VALUES", "1" if hides else "0")
    df = spark.createDataFrame([(1, "4111-1111", 17), (2, "4111-1111", 18)], ["ts", "card", "amount"])
    df = df.withColumn("ts", F.timestamp_seconds("ts"))
    out = df.transform(TIMED.key_by("card").accumulate(least=Reduce(fails, "amount")))
    with pytest.raises(Exception, match="UserFunctionError") as raised:
        out.toArrow()
    said = str(bm.errors.of(raised.value))
    assert ("(hidden)" in said) == hides
    assert ("4111-1111" in str(raised.value)) != hides
