"""Watermarks, keys and inputs of a pipeline: what is refused, with the value, the rule and the fix."""

import pandas as pd

import beamish as bm
from tests.refused import ORDERS, PLAIN, ROW, START, cases, refused

FRAME = pd.DataFrame([ROW])


AT_ONCE = {
    "negative watermark delay": lambda: bm.BoundedOutOfOrderness(-1),
    "max_future 0": lambda: bm.BoundedOutOfOrderness(1, max_future=0),
    "idle_timeout 0": lambda: bm.BoundedOutOfOrderness(1, idle_timeout=0),
    "negative lag": lambda: bm.ProcessingTimeLag(-1),
    "punctuated by nothing": lambda: bm.Punctuated(""),
    "no event time column": lambda: bm.Pipeline().event_time(None, bm.Punctuated("w")),
    "no watermark": lambda: bm.Pipeline().event_time("ts", "30 seconds"),
    "key 3": lambda: START.key_by(3),
    "key twice": lambda: START.key_by("a", "a"),
    "a class of watermarks": lambda: bm.Pipeline().event_time("ts", bm.ProcessingTimeLag),
}


REFUSED = {
    "merge without a name": lambda: bm.merge(ORDERS, ORDERS),
    "a table of pandas": lambda: PLAIN.apply(FRAME),
    "rows of a list": lambda: PLAIN.apply([ROW]),
    "merge of one frame": lambda: bm.merge(a=START, b=START).apply(3),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


@cases(REFUSED)
def test_invalid_pipelines_are_refused(name):
    refused(__file__, name, REFUSED[name])
