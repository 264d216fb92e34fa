import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, Sum
from beamish.kernels.reserved import BATCH, IS_ROW, REPORT
from beamish.script.tables import script_rows
from beamish.spark.rows.pack import NO_CLOCK
from beamish.spark.scripted import clock_rows, cut
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Always
from tests.said import evolve

FIXED = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("30 seconds"))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .trigger(AfterWatermark(early=AfterCount(1), late=AfterCount(1)))
    .allowed_lateness(20)
    .accumulating_and_retracting()
    .with_dropped()
    .accumulate(plays=Count(), total=Sum("score"))
)
FIXED_SCRIPT = (
    TestStream()
    .advance_watermark_to(0.5)
    .add([{"ts": 1, "team": "red", "score": 1}, {"ts": 2, "team": "blue", "score": 5}])
    .add([{"ts": 3, "team": "red", "score": 2}])
    .advance_watermark_to(10)
    .add([{"ts": 4, "team": "blue", "score": None}, {"ts": 15, "team": None, "score": 2}])
    .advance_watermark_to(30)
    .add([{"ts": 4, "team": "blue", "score": 1}, {"ts": None, "team": "blue", "score": 1}])
    .advance_watermark_to_infinity()
)

IDLE_SESSIONS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0, idle_timeout=5))
    .key_by("team")
    .window(bm.Sessions(4))
    .trigger(AfterWatermark(early=AfterProcessingTime(3), late=AfterCount(1)))
    .allowed_lateness(20)
    .accumulating_and_retracting()
    .accumulate(scores=Collect("score"))
)
IDLE_SCRIPT = (
    TestStream()
    .advance_processing_time_to(100)
    .add([{"ts": 1, "team": "red", "score": 1}, {"ts": 2, "team": "blue", "score": 5}])
    .advance_processing_time_by(3)
    .add([{"ts": 3, "team": "red", "score": 2}])
    .advance_watermark_to(2.5)
    .add([{"ts": 20, "team": "green", "score": 3}])
    .advance_processing_time_by(7)
    .add([{"ts": 21, "team": "green", "score": 9}])
    .advance_processing_time_by(20)
    .add([])
    .add([{"ts": 22, "team": "red", "score": 1}])
    .advance_watermark_to_infinity()
)

LAGGING = (
    bm.Pipeline()
    .event_time("ts", bm.ProcessingTimeLag(2))
    .window(bm.SlidingWindows(10, 5))
    .trigger(Always())
    .discarding()
    .accumulate(plays=Count())
)
LAGGING_SCRIPT = (
    TestStream()
    .add([{"ts": 1}])
    .advance_processing_time_by(7)
    .add([{"ts": 3}])
    .advance_processing_time_by(7)
    .add([{"ts": 3}, {"ts": 13}])
    .advance_processing_time_by(2)
    .add([{"ts": 8}])  # the clock has passed the end of [5, 15), the watermark has not
    .advance_processing_time_by(20)
)


@pytest.mark.parametrize(
    ("pipeline", "script", "options"),
    [
        pytest.param(FIXED, FIXED_SCRIPT, {}, id="timers wake the shards"),
        pytest.param(
            FIXED,
            FIXED_SCRIPT,
            {"shards": 4, "partitions": 1, "restart_after": (0, 3), "heartbeats": True},
            id="heartbeats wake them, restarts",
        ),
        pytest.param(IDLE_SESSIONS, IDLE_SCRIPT, {"restart_after": (8,)}, id="idle sessions, a restart"),
        pytest.param(LAGGING, LAGGING_SCRIPT, {}, id="processing time lag"),
    ],
)
def test_a_script_gives_the_same_panes_on_spark(spark, by_key, pipeline, script, options):
    expected = pipeline.run(script)
    assert len(expected) > 5
    assert by_key(script.on_spark(spark, pipeline, **options)) == by_key(expected)


def test_the_sessions_configuration_is_as_before(spark):
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    assert TestStream().add([]).on_spark(spark, FIXED, partitions=7) == []
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions


@pytest.mark.parametrize("watermark", [0, -5, 1.0005])
def test_a_watermark_that_spark_cannot_have_is_refused(watermark):
    script = TestStream().add([{"ts": 1, "team": "red", "score": 1}]).advance_watermark_to(watermark)
    with pytest.raises(bm.ScriptError, match=r"a whole number of milliseconds above 0"):
        script.on_spark(None, FIXED)


def test_a_watermark_under_processing_time_lag_is_refused():
    with pytest.raises(bm.ScriptError, match="the clock moves it"):
        TestStream().advance_watermark_to(1).on_spark(None, LAGGING)


def test_restarts_are_numbers_of_events():
    with pytest.raises(bm.OptionError, match=r"restart_after=\(1,\): numbers of events, 0 to 0"):
        TestStream().add([]).on_spark(None, FIXED, restart_after=(1,))


def test_a_pipeline_that_needs_the_clock_cannot_do_without_heartbeats(spark):
    script = TestStream().add([{"ts": 1, "team": "red", "score": 1}])
    waits = bm.Pipeline().trigger(AfterWatermark(early=AfterProcessingTime(1))).accumulating().accumulate(n=Count())
    for pipeline in (LAGGING, evolve(FIXED, with_dropped=False).then(waits)):
        with pytest.raises(bm.OptionError, match="this pipeline needs the clock"):
            script.on_spark(spark, pipeline, heartbeats=False)


def test_the_batch_of_an_event_carries_the_watermark_of_the_next():
    script = TestStream().advance_watermark_to(5).add([{"ts": 1}]).advance_watermark_to(6).advance_processing_time_to(9)
    (source,) = FIXED.flow.sources
    read = script_rows(FIXED.flow, script.events)
    rows = cut(source, script.events, read.tables[None], read.schemas[None])
    assert [tuple(row.values()) for row in rows.select([BATCH, REPORT, IS_ROW]).to_pylist()] == [
        (0, 5_000_000, False),
        (2, None, True),
        (2, 6_000_000, False),
    ]
    assert clock_rows(script.events).to_pylist() == [
        {"clock_us": NO_CLOCK, BATCH: 1},
        {"clock_us": NO_CLOCK, BATCH: 2},
        {"clock_us": NO_CLOCK, BATCH: 3},
        {"clock_us": 9_000_000, BATCH: 4},
    ]
