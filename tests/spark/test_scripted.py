import math
from types import SimpleNamespace

import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, Sum
from beamish.kernels.column_names import BATCH, IS_ROW, REPORT
from beamish.script import script_rows
from beamish.spark.rows.pack import NO_CLOCK
from beamish.spark.scripted import clock_rows, cut
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Always
from tests.cost import deep_after
from tests.declared_options import evolve

pytestmark = pytest.mark.usefixtures("several_partitions")

NO_SESSION = SimpleNamespace(readStream=None)
"""Options that are refused before Spark is called."""
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

FIXED_STEPS = (
    TestStream()
    .step([{"ts": 1, "team": "red", "score": 1}, {"ts": 2, "team": "blue", "score": 5}], watermark=0.5)
    .step([{"ts": 4, "team": "blue", "score": 2}, {"ts": 15, "team": None, "score": 2}], watermark=10, clock=3)
    .step([{"ts": 4, "team": "blue", "score": 1}, {"ts": 16, "team": "red", "score": 1}], watermark=30)
    .step()
    .step([{"ts": 17, "team": None, "score": 7}], watermark=math.inf, clock=9)
)
IDLE_STEPS = (
    TestStream()
    .step([{"ts": 1, "team": "red", "score": 1}, {"ts": 2, "team": "blue", "score": 5}], clock=100)
    .step([{"ts": 3, "team": "red", "score": 2}], watermark=2.5, clock=103)
    .step([{"ts": 6, "team": "blue", "score": 2}], watermark=4, clock=107)
    .step([{"ts": 20, "team": "green", "score": 3}], clock=110)
    .step(clock=112)
    .step([{"ts": 9, "team": "blue", "score": 4}, {"ts": 21, "team": "red", "score": 4}], clock=113)
    .step([{"ts": 22, "team": "red", "score": 1}], watermark=30, clock=116)
    .advance_watermark_to_infinity()
)
TWO_STAGES = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .trigger(AfterWatermark(early=AfterProcessingTime(3), late=AfterCount(1)))
    .allowed_lateness(20)
    .discarding()
    .accumulate(plays=Count())
    .then(
        bm.Pipeline()
        .key_by()
        .trigger(AfterWatermark(early=AfterCount(2), late=AfterCount(1)))
        .allowed_lateness(5)
        .discarding()
        .with_dropped()
        .accumulate(panes=Count(), plays=Sum("plays"))
    )
)
TWO_STAGES_STEPS = (
    TestStream()
    .step([{"ts": 1, "team": "red"}, {"ts": 11, "team": "blue"}], clock=1)
    .step([{"ts": 2, "team": "red"}, {"ts": 3, "team": "blue"}], watermark=10, clock=4)
    .step([{"ts": 4, "team": "red"}, {"ts": 12, "team": "red"}], clock=5)
    .step([{"ts": 13, "team": "red"}, {"ts": 5, "team": "red"}], watermark=20, clock=8)
    .step([{"ts": 21, "team": "red"}], watermark=25)
    .step(watermark=math.inf)
)


@pytest.mark.parametrize(
    ("pipeline", "script", "options"),
    deep_after(
        3,
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
            pytest.param(FIXED, FIXED_STEPS, {"restart_after": (1,)}, id="whole steps, a restart"),
            pytest.param(
                IDLE_SESSIONS, IDLE_STEPS, {"restart_after": (1,)}, id="whole steps of idle sessions, a restart"
            ),
            pytest.param(
                TWO_STAGES, TWO_STAGES_STEPS, {"restart_after": (0,)}, id="whole steps of two stages, a restart"
            ),
        ],
    ),
)
def test_a_script_gives_the_same_panes_on_spark(spark, by_key, pipeline, script, options):
    expected = script.trace(pipeline)
    assert sum(len(panes) for _, panes in expected) > 5
    for (event, came), (_, panes) in zip(script.trace_on_spark(spark, pipeline, **options), expected, strict=True):
        assert by_key(came) == by_key(panes), event


def test_the_sessions_configuration_is_as_before(spark):
    names = ("spark.sql.shuffle.partitions", "spark.sql.streaming.noDataMicroBatches.enabled")
    before = [spark.conf.get(name) for name in names]
    wrong = TestStream().step([{"ts": 1, "team": "red", "score": 1}])
    with pytest.raises(bm.OptionError):
        wrong.on_spark(spark, IDLE_SESSIONS, partitions=7, heartbeats=False)
    assert [spark.conf.get(name) for name in names] == before


@pytest.mark.parametrize("watermark", [0, -5, 1.0005])
def test_a_watermark_that_spark_cannot_have_is_refused(watermark):
    script = TestStream().add([{"ts": 1, "team": "red", "score": 1}])
    for last in (script.advance_watermark_to(watermark), script.step(watermark=watermark)):
        with pytest.raises(
            bm.ScriptError, match=rf"{float(watermark)}\): on Spark .* a whole number of milliseconds above 0"
        ):
            last.on_spark(NO_SESSION, FIXED)


def test_a_watermark_under_processing_time_lag_is_refused():
    with pytest.raises(bm.ScriptError, match="it follows the clock"):
        TestStream().advance_watermark_to(1).on_spark(NO_SESSION, LAGGING)


def test_restarts_are_numbers_of_events():
    with pytest.raises(bm.OptionError, match=r"restart_after=\(1,\): numbers of events, 0 to 0"):
        TestStream().add([]).on_spark(NO_SESSION, FIXED, restart_after=(1,))


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


def test_a_step_is_a_batch_of_its_clock_and_rows_after_one_of_its_watermark():
    script = TestStream().step([{"ts": 1}], watermark=5, clock=7).step(watermark=6).step([{"ts": 2}], clock=9)
    (source,) = FIXED.flow.sources
    read = script_rows(FIXED.flow, script.events)
    rows = cut(source, script.events, read.tables[None], read.schemas[None])
    assert [tuple(row.values()) for row in rows.select(["ts", BATCH, REPORT, IS_ROW]).to_pylist()] == [
        (None, 0, 5_000_000, False),
        (1, 1, None, True),
        (None, 1, 6_000_000, False),
        (2, 3, None, True),
    ]
    assert [row["clock_us"] for row in clock_rows(script.events).to_pylist()] == [7_000_000, 7_000_000, 9_000_000]


def test_a_step_of_several_inputs_is_one_batch(spark):
    keyed = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
    counted = (
        bm.merge(a=keyed, b=keyed)
        .window(bm.FixedWindows(10))
        .trigger(AfterWatermark(early=Always(), late=Always()))
        .allowed_lateness(60)
        .accumulating()
        .accumulate(n=Count())
    )
    one, *others = [{"k": 1, "ts": ts} for ts in range(1, 7)]
    script = TestStream().step({"a": [one], "b": others[:2]}).step({"a": others[2:3]}, watermark={"a": 20, "b": 5})
    script = script.step({"a": others[3:4], "b": others[4:]}, watermark={"b": 12})
    panes = script.on_spark(spark, counted, shards=1)
    assert [pane.values["n"] for pane in panes] == [3, 4, 4, 6]
    assert panes == counted.run(script)
