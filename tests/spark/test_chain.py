"""Chained stages on Spark, in one query: the same panes as in process."""

from datetime import UTC, datetime

import pytest

import beamish as bm
from beamish.accumulations import CollectSet, Count, Max, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, AfterWatermark, Always
from tests.agreement import differences

pytestmark = pytest.mark.spark

TOTALS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("user")
    .window(bm.FixedWindows(10))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness(100)
    .accumulating_and_retracting()
    .accumulate(total=Sum("score"))
)
BY_TOTAL = (
    bm.Pipeline()
    .key_by("total")
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness(100)
    .accumulating_and_retracting()
    .accumulate(users=Count(), names=CollectSet("user"), last=Max("user"))
)
COUNT_PER_MINUTE = (
    bm.Pipeline()
    .window(bm.FixedWindows(60))
    .trigger(AfterWatermark(late=Always()))
    .allowed_lateness(1000)
    .accumulating()
    .with_dropped()
    .accumulate(groups=Count(), users=Sum("users"))
)
SESSIONS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("user")
    .window(bm.Sessions(10))
    .trigger(AfterWatermark(early=AfterProcessingTime(5), late=Always()))
    .allowed_lateness(30)
    .accumulating_and_retracting()
    .accumulate(rows=Count())
)


def rows(*scores):
    return [{"ts": ts, "user": user, "score": score} for ts, user, score in scores]


SCRIPT = (
    TestStream()
    .add(rows((1, "ann", 1), (2, "bob", 1), (3, "cid", 2)))
    .add(rows((3, "ann", 1), (12, "bob", 5)))
    .advance_watermark_to(10)
    .add(rows((5, "bob", 1)))
    .advance_processing_time_by(7)
    .add(rows((14, "dan", 5), (40, "ann", 3), (8, "eve", 1)))
    .advance_watermark_to(55)
    .advance_processing_time_by(7)
    .add(rows((50, "ann", 3), (12, "bob", 1)))
    .advance_watermark_to_infinity()
)
CHAINS = {
    "totals by total": TOTALS.then(BY_TOTAL),
    "three stages": TOTALS.then(BY_TOTAL).then(COUNT_PER_MINUTE),
    "sessions, with the clock, into fixed windows": SESSIONS.then(
        bm.Pipeline()
        .window(bm.FixedWindows(60))
        .trigger(AfterWatermark(early=AfterProcessingTime(3), late=Always()))
        .allowed_lateness(60)
        .accumulating_and_retracting()
        .accumulate(sessions=Count(), rows=Sum("rows"))
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chain_on_spark_equals_chain_in_process(spark, name):
    chain = CHAINS[name]
    on_spark = SCRIPT.on_spark(spark, chain, shards=3, restart_after=(3,))
    assert not differences(on_spark, chain.run(SCRIPT), chain.stages[-1].options)


def test_retraction_moves_a_key_from_one_group_to_another():
    live = {}
    for pane in CHAINS["totals by total"].run(SCRIPT):
        place = pane.key["total"], pane.window.start.timestamp()
        if pane.kind == "RETRACTION":
            assert live.pop(place) == pane.values
        else:
            assert place not in live
            live[place] = pane.values
    assert {place: values["names"] for place, values in live.items()} == {
        (2, 0): ["ann", "bob", "cid"],
        (1, 0): ["eve"],
        (6, 10): ["bob"],
        (5, 10): ["dan"],
        (3, 40): ["ann"],
        (3, 50): ["ann"],
    }


def test_chain_on_a_batch_dataframe_aggregates_twice(spark):
    scores = [
        (datetime.fromtimestamp(ts, UTC), user, score) for ts, user, score in ((1, "a", 1), (2, "b", 1), (3, "a", 1))
    ]
    df = spark.createDataFrame(scores, "ts timestamp, user string, score int")
    panes = CHAINS["totals by total"].apply(df).select("total", "users", "pane.timing").collect()
    assert sorted(map(tuple, panes)) == [(1, 1, "ON_TIME"), (2, 1, "ON_TIME")]
