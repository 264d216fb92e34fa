"""Versioned tables of a pipeline: what is refused, with the value, the rule and the fix."""

import pyarrow as pa

import beamish as bm
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.refused import (
    CHANGE,
    CHANGES,
    ONE_CHANGE,
    ONE_ROW,
    PLAIN,
    PLAIN_STAGE,
    RATES,
    ROW,
    START,
    TIMELESS,
    cases,
    refused,
)

REFUSED = {
    "history negative": lambda: CHANGES.versions(-1),
    "history is text": lambda: CHANGES.versions("a while"),
    "lateness negative": lambda: CHANGES.versions(5, allowed_lateness="-1 second"),
    "lateness above the history": lambda: CHANGES.versions("1 hour", allowed_lateness="2 hours"),
    "values is text": lambda: CHANGES.versions(5, values="rate"),
    "values is a number": lambda: CHANGES.versions(5, values=3),
    "value twice": lambda: CHANGES.versions(5, values=["a", "a"]),
    "deleted is a number": lambda: CHANGES.versions(5, deleted=3),
    "sequence is empty": lambda: CHANGES.versions(5, sequence_by=""),
    "windows before": lambda: PLAIN.versions(5),
    "a trigger before": lambda: CHANGES.trigger(Always()).versions(5),
    "a window after versions": lambda: RATES.window(bm.FixedWindows(5)),
    "a table of panes without timestamp": lambda: TIMELESS.then(bm.Pipeline().key_by("team").versions(5)),
    "a value with the name of an output column": lambda: CHANGES.versions(5, values=["Pane"]),
    "a key with the name of an output column": lambda: START.key_by("valid_to").versions(5),
    "a key among the values": lambda: CHANGES.versions(5, values=["cur"]),
    "a column with the name of an output column": lambda: RATES.run(TestStream().add([{**CHANGE, "window": 3}])),
    "versions of changes": lambda: CHANGES.changes().versions(5),
    "deleted is no boolean": lambda: CHANGES.versions(5, deleted="rate").run(ONE_CHANGE),
    "a value that is not there": lambda: CHANGES.versions(5, values=["price"]).run(ONE_CHANGE),
    "a key is a list": lambda: START.key_by("tags").versions(5).run(ONE_CHANGE),
    "discarding after versions": lambda: RATES.then(PLAIN_STAGE.trigger(Always()).discarding()),
    "initial is a number": lambda: RATES.run(ONE_CHANGE, initial=3),
    "initial of no table": lambda: PLAIN.run(ONE_ROW, initial=[ROW]),
    "versions of no table": lambda: PLAIN.state(ONE_ROW).versions(),
    "versions of another": lambda: RATES.state(ONE_CHANGE).versions("x"),
    "versions as of too early a time": lambda: RATES.state(ONE_CHANGE.advance_watermark_to(10**6)).versions(as_of=5),
}


@cases(REFUSED)
def test_invalid_pipelines_are_refused(name):
    refused(__file__, name, REFUSED[name])


def test_a_sequence_without_order_is_refused():
    kinds = pa.schema([("ts", pa.timestamp("us")), ("cur", pa.string()), ("seq", pa.map_(pa.string(), pa.int64()))])
    flow = CHANGES.versions(5, sequence_by="seq").flow
    refused(__file__, "a sequence without order", lambda: flow.bind({None: kinds}, shards=1))
