"""Questions to stored state: what is refused, with the value, the rule and the fix."""

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream
from tests.refused import ONE_CHANGE, ONE_ROW, PLAIN, RATES, START, cases, refused

# The call, and fragments of the message: value, rule, fix.
AT_ONCE = [
    (
        "why of no key column",
        lambda: PLAIN.why(ONE_ROW, key={"x": 1}),
        ["why(key={'x': 1})", "'x' is not a key column", "['team']"],
    ),
    ("why of another type of key", lambda: PLAIN.why(ONE_ROW, key=3), ["why(key={'team': 3})", "'team' is string"]),
    (
        "why of a value of no key",
        lambda: START.window(bm.FixedWindows(1)).accumulate(n=Count()).why(ONE_ROW, key=3),
        ["why(key=3)", "key columns are []"],
    ),
    (
        "why of a window of no time",
        lambda: PLAIN.why(ONE_ROW, window="noon"),
        ["why(window)", "'noon'", "2026-01-01T10:14Z", "aware datetime"],
    ),
    (
        "why of a window of no span",
        lambda: PLAIN.why(ONE_ROW, window=(60, 60)),
        ["window=(60, 60)", "ends before it begins"],
    ),
    (
        "why of a row by a time",
        lambda: PLAIN.window(bm.CountWindows(2)).why(ONE_ROW, window=0.5),
        ["why(window)=0.5", "bounded by row numbers"],
    ),
    ("inspect without a session", lambda: bm.inspect("/c", "/c"), ["inspect('/c', ...)", "SparkSession"]),
    ("windows of no span", lambda: PLAIN.state(TestStream()).windows(5, 5), ["windows(start=5, end=5)", "empty"]),
    ("windows of no time", lambda: PLAIN.state(TestStream()).windows("noon"), ["windows(start)", "'noon'"]),
    (
        "windows of no key",
        lambda: PLAIN.state(TestStream().add([{"ts": 1, "team": "a", "score": 1}])).windows(key={"x": 1}),
        ["key={'x': 1}", "not a key column"],
    ),
]


# The error, what is written, and what the message must hold.
REFUSED = [
    ("why of no windows", bm.PipelineError, lambda: RATES.why(ONE_CHANGE), ["why()", "no stage has windows"]),
    (
        "why of another stage",
        bm.PipelineError,
        lambda: PLAIN.why(ONE_ROW, stage=2),
        ["why(stage=2)", "stages with windows are 1"],
    ),
    (
        "why of no script",
        bm.ScriptError,
        lambda: PLAIN.why("/checkpoint"),
        ["why('/checkpoint')", "bm.inspect(spark, checkpoint)"],
    ),
    (
        "inspect with no pipeline",
        bm.PipelineError,
        lambda: bm.inspect(None, "/c", 3),
        ["inspect(spark, checkpoint, 3)", "left out"],
    ),
]


@cases(AT_ONCE, "call", "fragments")
def test_an_invalid_option_is_rejected_at_its_call(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)


@cases(REFUSED, "error", "call", "fragments")
def test_invalid_pipelines_are_refused(error, call, fragments):
    refused(error, call, fragments)
