"""Several windowings of a stream in one pass, on Spark."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import beamish as bm
from beamish.accumulations import Collect, Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always
from tests.agreement import differences

COLUMNS = {"ts": pa.timestamp("us", tz="UTC"), "team": pa.string(), "score": pa.int64()}
MINUTE, VISIT = {"minute": bm.FixedWindows(60)}, {"visit": bm.Sessions(100)}


def row(seconds, team, score):
    return {"ts": datetime.fromtimestamp(seconds, UTC), "team": team, "score": score}


def counts(windowings):
    return (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(windowings)
        .accumulate(n=Count(), total=Sum("score"))
    )


def shown(panes):
    return sorted((pane.key["windowing"], pane.key["team"], pane.values["n"]) for batch in panes for pane in batch)


def test_several_windowings_on_spark_agree_with_in_process_runs(spark):
    pipeline = (
        counts({**MINUTE, **VISIT, "all": bm.GlobalWindow()})
        .trigger(AfterWatermark(early=Always(), late=Always()))
        .allowed_lateness(200)
        .accumulating_and_retracting()
        .accumulate(scores=Collect("score"))
    )
    script = (
        TestStream()
        .add([{"ts": 10, "team": "a", "score": 1}, {"ts": 70, "team": "b", "score": 2}])
        .advance_watermark_to(65)
        .add([{"ts": 62, "team": "a", "score": 3}, {"ts": 5, "team": "b", "score": 4}])
        .advance_watermark_to_infinity()
    )
    on_spark = script.on_spark(spark, pipeline, restart_after=[1], shards=3, partitions=1)
    assert not differences(pipeline.run(script), on_spark, pipeline)


@pytest.mark.deep
def test_a_windowing_may_be_added_but_not_removed(spark, files, run_query):
    input_ = files(**COLUMNS).add(row(1, "red", 5)).add(row(70, "red", 6))
    assert shown(run_query(counts(MINUTE), input_.stream())) == [("minute", "red", 1)]
    input_.add(row(75, "red", 7)).add(row(500, "red", 8))
    panes = shown(run_query(counts({**MINUTE, **VISIT}), input_.stream()))
    assert panes == [("minute", "red", 2), ("visit", "red", 1)]
    input_.add(row(501, "red", 9))
    with pytest.raises(StreamingQueryException, match=r"the checkpoint has windows of 'visit'"):
        run_query(counts(MINUTE), input_.stream())
    with pytest.raises(StreamingQueryException, match=r"the windowings 'minute', 'visit'.*keep \.window\(\{"):
        run_query(counts(bm.FixedWindows(60)), input_.stream())


def test_a_checkpoint_of_an_unnamed_windowing_does_not_open_with_several(files, run_query):
    input_ = files(**COLUMNS).add(row(1, "red", 5))
    run_query(counts(bm.FixedWindows(60)), input_.stream())
    input_.add(row(75, "red", 7))
    with pytest.raises(StreamingQueryException, match=r"one unnamed windowing.*keep the plain"):
        run_query(counts(MINUTE), input_.stream())


def test_a_batch_has_the_panes_of_each_windowing(spark):
    rows = spark.createDataFrame(
        [tuple(row(at, team, at).values()) for at in (1, 70, 75, 400) for team in "ab"],
        "ts timestamp, team string, score long",
    )
    pipeline = counts({**MINUTE, **VISIT, "month": bm.CalendarWindows(months=1)})
    found = pipeline.apply(rows).orderBy("windowing", "team", "window.start").collect()
    assert [(pane.windowing, pane.team, pane.n) for pane in found] == [
        *[("minute", team, n) for team in "ab" for n in (1, 2, 1)],
        *[("month", team, 4) for team in "ab"],
        *[("visit", team, n) for team in "ab" for n in (3, 1)],
    ]
    text = pipeline.explain(rows)
    assert "minute: Spark's own aggregation" in text
    assert "month: one pass of the engine per shard, since Spark has no window like" in text
