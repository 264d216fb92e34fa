"""Scripts: what is refused, with the value, the rule and the fix."""

from datetime import UTC, datetime

import pandas as pd

import beamish as bm
from beamish.testing import TestStream
from tests.refused import ONE_ROW, PLAIN, START, cases, refused

AT_ONCE = {
    "naive time": lambda: TestStream().advance_watermark_to(datetime(2024, 1, 1)),  # noqa: DTZ001
    "time is text": lambda: TestStream().advance_watermark_to("noon"),
    "watermark back": lambda: TestStream().advance_watermark_to(5).advance_watermark_to(4),
    "clock back": lambda: TestStream().advance_processing_time_to(-1),
    "step's watermark back": lambda: TestStream().advance_watermark_to(5).step(watermark=4),
    "watermark back after a step": lambda: TestStream().step(watermark=5).advance_watermark_to(4),
    "step's clock back": lambda: TestStream().step(clock=5).step(clock=4),
    "step's time is text": lambda: TestStream().step(clock="noon"),
    "step's row is no dict": lambda: TestStream().step([3]),
    "step's rows are no rows": lambda: TestStream().step(3),
    "row is no dict": lambda: TestStream().add([3]),
    "rows are no rows": lambda: TestStream().add(3),
    "one row is no bundle": lambda: TestStream().add({"ts": 1}),
    "rows of pandas": lambda: TestStream().add(pd.DataFrame({"ts": [1]})),
    "trace of a number": lambda: ONE_ROW.trace(3),
    "on_spark of a number": lambda: ONE_ROW.on_spark(None, 3),
    "on_spark without a session": lambda: ONE_ROW.on_spark(None, PLAIN),
    "script is a list": lambda: START.run([{"ts": 1}]),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


def test_a_column_of_two_types_is_refused():
    script = TestStream().add([{"ts": 1, "team": "a"}, {"ts": 1, "team": 3}])
    refused(__file__, "a column of two types", lambda: PLAIN.run(script))


def test_an_event_time_that_is_no_time_is_refused():
    refused(__file__, "an event time at noon", lambda: PLAIN.run(TestStream().add([{"ts": "noon", "team": "a"}])))


def test_an_explicit_watermark_is_refused_where_the_clock_moves_it():
    pipeline = PLAIN.event_time("ts", bm.ProcessingTimeLag("1 minute"))
    refused(__file__, "a watermark that follows the clock", lambda: pipeline.run(ONE_ROW.advance_watermark_to(5)))


def test_aware_datetimes_and_seconds_are_the_same_times():
    at = datetime(2024, 1, 1, tzinfo=UTC)
    assert TestStream().advance_watermark_to(at) == TestStream().advance_watermark_to(at.timestamp())
