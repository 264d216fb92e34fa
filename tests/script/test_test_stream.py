"""A script, as it is written: what its calls add to it, and what a whole step means."""

import math
from datetime import UTC, datetime

import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.script import Step
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark

COUNTS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .window(bm.FixedWindows(10))
    .trigger(AfterWatermark(early=AfterProcessingTime(5), late=AfterCount(1)))
    .allowed_lateness(100)
    .accumulating()
    .accumulate(n=Count())
)
TWO = bm.merge(
    a=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)),
    b=bm.Pipeline().event_time("ts", bm.ProcessingTimeLag(1)),
)
TWO = TWO.window(bm.FixedWindows(10)).accumulate(n=Count())


def test_a_step_moves_the_watermark_then_the_clock_and_then_the_rows_arrive():
    script = TestStream().add([{"ts": 1}, {"ts": 11}])
    rows = [{"ts": 2}, {"ts": 12}]
    (_, before), (event, panes) = script.step(rows, watermark=10, clock=5).trace(COUNTS)
    one_by_one = script.advance_watermark_to(10).advance_processing_time_to(5).add(rows)
    assert [*before, *panes] == COUNTS.run(one_by_one)
    assert event == Step(tuple(rows), None, 10_000_000, 5_000_000)
    assert [(pane.window.start.timestamp(), pane.timing) for pane in panes] == [
        (0, "ON_TIME"),
        (10, "EARLY"),
        (0, "LATE"),
    ]


def test_a_step_moves_only_its_arguments():
    script = TestStream().step(watermark=10, clock=5)
    assert script.step().events[-1] == Step()
    assert script.step(clock=6).events[-1] == Step(clock_us=6_000_000)
    assert script.step(watermark=datetime(1970, 1, 2, tzinfo=UTC)).events[-1] == Step(watermark_us=86_400_000_000)
    late = COUNTS.run(script.step([{"ts": 1}]).step([{"ts": 2}]))
    assert [pane.timing for pane in late] == ["LATE", "LATE"]


def test_a_step_of_nothing_gives_nothing():
    script = TestStream().add([{"ts": 1}])
    assert COUNTS.run(script.step().step(()).step([], watermark=9, clock=4)) == []
    assert COUNTS.run(TestStream().step(watermark=5)) == []


def test_an_infinite_watermark_of_a_step_is_the_end_of_time():
    assert TestStream().step(watermark=math.inf).step(watermark=math.inf) == TestStream(
        (Step(watermark_us=2**63 - 1),) * 2
    )
    with pytest.raises(bm.ScriptError, match="would go back"):
        TestStream().step(watermark=math.inf).step(watermark=10)


def test_a_delay_of_the_clock_continues_from_a_step():
    assert TestStream().step(clock=5).advance_processing_time_by(2).events[-1].us == 7_000_000


def test_a_step_of_a_merge_has_the_rows_and_the_watermark_of_one_input():
    script = TestStream().step([{"ts": 1}], watermark=12, clock=5, input="a").step([{"ts": 2}], clock=11, input="b")
    (_, first), (_, second) = script.trace(TWO)
    assert first == []
    assert [(pane.timing, pane.values) for pane in second] == [("ON_TIME", {"n": 1})]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            TestStream().step([{"ts": 1}]),
            r"step\(rows\): the pipeline merges a, b; name the input of the rows: input='a'",
        ),
        (TestStream().step(input="c"), r"step\(rows\) with input='c': the inputs are a, b"),
        (
            TestStream().step(watermark=5, input="b"),
            r"step\(watermark=5.0\) with ProcessingTimeLag: it follows the clock",
        ),
        (TestStream().step(watermark=5), r"step\(watermark=5.0\) with ProcessingTimeLag: it follows the clock"),
    ],
)
def test_a_step_that_a_merge_cannot_take_is_refused(script, words):
    with pytest.raises(bm.ScriptError, match=words):
        script.trace(TWO)


def test_a_step_cannot_name_an_input_where_there_is_none():
    with pytest.raises(
        bm.ScriptError, match=r"step\(rows\) with input='a': the pipeline is not a merge; leave input= out"
    ):
        COUNTS.run(TestStream().step([{"ts": 1}], input="a"))


def test_a_step_cannot_move_the_watermark_back():
    ahead = TestStream().step(watermark=5, input="a")
    assert ahead.step(watermark=4, input="b").step(watermark=6).events[-1] == Step(watermark_us=6_000_000)
    with pytest.raises(bm.ScriptError, match=r"from 5.0 to 4.0"):
        ahead.step(watermark=4)
