"""Stages after a merge whose inputs' watermarks depend on the clock: the merge tells them its watermark."""

import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, AfterWatermark
from tests.agreement import differences


def merged(left, right):
    def rows(watermark):
        return bm.Pipeline().event_time("ts", watermark).key_by("user")

    return (
        bm.merge(left=rows(left), right=rows(right))
        .window(bm.FixedWindows(10))
        .trigger(AfterWatermark(early=AfterProcessingTime(5), late=AfterProcessingTime(0)))
        .allowed_lateness(20)
        .accumulating_and_retracting()
        .accumulate(left=Sum("x").of("left"), right=Count().of("right"))
    )


TOTALS = bm.Pipeline().key_by("right").accumulate(users=Count(), left=Sum("left"))
HOURS = bm.Pipeline().window(bm.FixedWindows(3600)).accumulate(users=Sum("users"))


def row(at, user="a", x=1):
    return {"ts": at, "user": user, "x": x}


SCRIPT = (
    TestStream()
    .advance_processing_time_to(100)
    .add([row(1), row(2, "b")], input="left")
    .add([row(3)], input="right")
    .advance_watermark_to(4, input="left")
    .advance_watermark_to(30, input="right")
    .advance_processing_time_by(6)
    .add([row(5, "b", 7)], input="left")
    .advance_processing_time_by(30)
    .advance_processing_time_by(30)
    .add([row(9, "b", 8), row(70, "a", 9)], input="left")
    .advance_processing_time_by(3600)
    .advance_processing_time_by(3600)
    .advance_processing_time_by(3600)
)


@pytest.mark.deep
def test_stages_after_a_merge_with_idle_inputs_follow_its_watermark(spark):
    first = merged(bm.BoundedOutOfOrderness(0, idle_timeout=20), bm.BoundedOutOfOrderness(0, idle_timeout=20))
    chain = first.then(TOTALS.accumulating_and_retracting()).then(HOURS)
    expected = chain.run(SCRIPT)
    assert any(pane.timing == "ON_TIME" for pane in expected)
    found = SCRIPT.on_spark(spark, chain, restart_after=[6], shards=3, partitions=1)
    assert not differences(expected, found, chain)


def test_a_chain_is_explained_with_the_inputs_of_its_merge(spark):
    rows = spark.createDataFrame([(1, "a", 1)], "at long, user string, x long").selectExpr(
        "timestamp_seconds(at) ts", "user", "x"
    )
    chain = merged(bm.BoundedOutOfOrderness(0), bm.BoundedOutOfOrderness(0)).then(TOTALS)
    text = chain.explain(left=rows, right=rows)
    assert "stage 2 of 2" in text
    assert "left int64" in text
