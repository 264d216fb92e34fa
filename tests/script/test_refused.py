"""Scripts: what is refused, with the value, the rule and the fix."""

from datetime import UTC, datetime

import pandas as pd

import beamish as bm
from beamish.testing import TestStream
from tests.refused import ONE_ROW, PLAIN, START, cases, refused

# The call, and fragments of the message: value, rule, fix.
AT_ONCE = [
    ("naive time", lambda: TestStream().advance_watermark_to(datetime(2024, 1, 1)), ["time zone", "tzinfo=UTC"]),  # noqa: DTZ001
    ("time is text", lambda: TestStream().advance_watermark_to("noon"), ["'noon'", "seconds since the epoch"]),
    ("watermark back", lambda: TestStream().advance_watermark_to(5).advance_watermark_to(4), ["5.0", "4.0"]),
    ("clock back", lambda: TestStream().advance_processing_time_to(-1), ["clock would go back"]),
    ("step's watermark back", lambda: TestStream().advance_watermark_to(5).step(watermark=4), ["5.0", "4.0"]),
    ("watermark back after a step", lambda: TestStream().step(watermark=5).advance_watermark_to(4), ["5.0", "4.0"]),
    ("step's clock back", lambda: TestStream().step(clock=5).step(clock=4), ["clock would go back", "5.0", "4.0"]),
    ("step's time is text", lambda: TestStream().step(clock="noon"), ["step(clock)='noon'", "seconds since the epoch"]),
    ("step's row is no dict", lambda: TestStream().step([3]), ["step(3)", "dict"]),
    ("step's rows are no rows", lambda: TestStream().step(3), ["step(3)", "step([{'ts': 1}])"]),
    ("row is no dict", lambda: TestStream().add([3]), ["add(3)", "dict"]),
    ("rows are no rows", lambda: TestStream().add(3), ["add(3)", "dicts"]),
    ("one row is no bundle", lambda: TestStream().add({"ts": 1}), ["add({'ts': 1})", "add([{'ts': 1}])"]),
    ("rows of pandas", lambda: TestStream().add(pd.DataFrame({"ts": [1]})), ["a DataFrame", "to_dict('records')"]),
    ("trace of a number", lambda: ONE_ROW.trace(3), ["trace(3)", "must be a pipeline"]),
    ("on_spark of a number", lambda: ONE_ROW.on_spark(None, 3), ["3", "must be a pipeline"]),
    ("on_spark without a session", lambda: ONE_ROW.on_spark(None, PLAIN), ["(None, ...)", "a SparkSession"]),
    ("script is a list", lambda: START.run([{"ts": 1}]), ["run([{'ts': 1}])", "TestStream().add("]),
]


@cases(AT_ONCE, "call", "fragments")
def test_an_invalid_option_is_rejected_at_its_call(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)


def test_a_column_of_two_types_is_refused():
    script = TestStream().add([{"ts": 1, "team": "a"}, {"ts": 1, "team": 3}])
    refused(bm.ScriptError, lambda: PLAIN.run(script), ["'team'", "int", "str"])


def test_an_event_time_that_is_no_time_is_refused():
    refused(bm.ScriptError, lambda: PLAIN.run(TestStream().add([{"ts": "noon", "team": "a"}])), ["row['ts']='noon'"])


def test_an_explicit_watermark_is_refused_where_the_clock_moves_it():
    pipeline = PLAIN.event_time("ts", bm.ProcessingTimeLag("1 minute"))
    refused(bm.ScriptError, lambda: pipeline.run(ONE_ROW.advance_watermark_to(5)), ["ProcessingTimeLag"])


def test_aware_datetimes_and_seconds_are_the_same_times():
    at = datetime(2024, 1, 1, tzinfo=UTC)
    assert TestStream().advance_watermark_to(at) == TestStream().advance_watermark_to(at.timestamp())
