"""Watermarks, keys and inputs of a pipeline: what is refused, with the value, the rule and the fix."""

import pandas as pd

import beamish as bm
from tests.refused import ORDERS, PLAIN, ROW, START, cases, refused

FRAME = pd.DataFrame([ROW])


# The call, and fragments of the message: value, rule, fix.
AT_ONCE = [
    ("negative watermark delay", lambda: bm.BoundedOutOfOrderness(-1), ["(delay)=-1", "not be negative"]),
    ("max_future 0", lambda: bm.BoundedOutOfOrderness(1, max_future=0), ["(max_future)=0", "above 0"]),
    ("idle_timeout 0", lambda: bm.BoundedOutOfOrderness(1, idle_timeout=0), ["(idle_timeout)=0", "above 0"]),
    ("negative lag", lambda: bm.ProcessingTimeLag(-1), ["(lag)=-1", "not be negative"]),
    ("punctuated by nothing", lambda: bm.Punctuated(""), ["''", "column"]),
    ("no event time column", lambda: bm.Pipeline().event_time(None, bm.Punctuated("w")), ["None", "column"]),
    ("no watermark", lambda: bm.Pipeline().event_time("ts", "30 seconds"), ["'30 seconds'", "BoundedOutOfOrderness"]),
    ("key 3", lambda: START.key_by(3), ["key_by(column)=3", "name of a column"]),
    ("key twice", lambda: START.key_by("a", "a"), ["twice"]),
    (
        "a class of watermarks",
        lambda: bm.Pipeline().event_time("ts", bm.ProcessingTimeLag),
        ["event_time(watermark)=ProcessingTimeLag:", "write ProcessingTimeLag(...)"],
    ),
]


# The error, what is written, and what the message must hold.
REFUSED = [
    (
        "merge without a name",
        bm.PipelineError,
        lambda: bm.merge(ORDERS, ORDERS),
        ["2 unnamed inputs", "merge(orders=..."],
    ),
    ("a table of pandas", bm.PipelineError, lambda: PLAIN.apply(FRAME), ["pandas.DataFrame", "createDataFrame("]),
    ("rows of a list", bm.PipelineError, lambda: PLAIN.apply([ROW]), ["apply([{", "a DataFrame of Spark"]),
    ("merge of one frame", bm.PipelineError, lambda: bm.merge(a=START, b=START).apply(3), ["name its inputs", "a=..."]),
]


@cases(AT_ONCE, "call", "fragments")
def test_an_invalid_option_is_rejected_at_its_call(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)


@cases(REFUSED, "error", "call", "fragments")
def test_invalid_pipelines_are_refused(error, call, fragments):
    refused(error, call, fragments)
