"""Questions to stored state: what is refused, with the value, the rule and the fix."""

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream
from tests.kinds.hold_back.pipelines import PIPELINES, SCRIPT
from tests.refused import ONE_CHANGE, ONE_ROW, PLAIN, RATES, START, cases, refused

AT_ONCE = {
    "why of no key column": lambda: PLAIN.why(ONE_ROW, key={"x": 1}),
    "why of another type of key": lambda: PLAIN.why(ONE_ROW, key=3),
    "why of a value of no key": lambda: START.window(bm.FixedWindows(1)).accumulate(n=Count()).why(ONE_ROW, key=3),
    "why of a window of no time": lambda: PLAIN.why(ONE_ROW, window="noon"),
    "why of a window of no span": lambda: PLAIN.why(ONE_ROW, window=(60, 60)),
    "why of a row by a time": lambda: PLAIN.window(bm.CountWindows(2)).why(ONE_ROW, window=0.5),
    "inspect without a session": lambda: bm.inspect("/c", "/c"),
    "windows of no span": lambda: PLAIN.state(TestStream()).windows(5, 5),
    "windows of no time": lambda: PLAIN.state(TestStream()).windows("noon"),
    "windows of no windows": lambda: RATES.state(ONE_CHANGE).windows(),
    "windows of no key": lambda: PLAIN.state(TestStream().add([{"ts": 1, "team": "a", "score": 1}])).windows(
        key={"x": 1}
    ),
}


REFUSED = {
    "why of no windows": lambda: PIPELINES["rows held back"].why(SCRIPT),
    "why of a window of a stage without": lambda: RATES.why(ONE_CHANGE, window=5),
    "why of another stage": lambda: PLAIN.why(ONE_ROW, stage=2),
    "why of no script": lambda: PLAIN.why("/checkpoint"),
    "inspect with no pipeline": lambda: bm.inspect(None, "/c", 3),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


@cases(REFUSED)
def test_invalid_pipelines_are_refused(name):
    refused(__file__, name, REFUSED[name])
