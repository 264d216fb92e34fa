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

# The error, what is written, and what the message must hold.
REFUSED = [
    ("history negative", bm.OptionError, lambda: CHANGES.versions(-1), ["versions(history)=-1", "not be negative"]),
    ("history is text", bm.OptionError, lambda: CHANGES.versions("a while"), ["'a while'", "'10 minutes'"]),
    (
        "lateness negative",
        bm.OptionError,
        lambda: CHANGES.versions(5, allowed_lateness="-1 second"),
        ["versions(allowed_lateness)='-1 second'", "not be negative"],
    ),
    (
        "lateness above the history",
        bm.PipelineError,
        lambda: CHANGES.versions("1 hour", allowed_lateness="2 hours"),
        ["'2 hours'", "'1 hour'", "expired", "longer history"],
    ),
    ("values is text", bm.OptionError, lambda: CHANGES.versions(5, values="rate"), ["values='rate'", "['rate']"]),
    ("values is a number", bm.OptionError, lambda: CHANGES.versions(5, values=3), ["values=3", "['rate']"]),
    ("value twice", bm.OptionError, lambda: CHANGES.versions(5, values=["a", "a"]), ["['a', 'a']", "twice", "once"]),
    ("deleted is a number", bm.OptionError, lambda: CHANGES.versions(5, deleted=3), ["deleted=3", "name of a column"]),
    (
        "sequence is empty",
        bm.OptionError,
        lambda: CHANGES.versions(5, sequence_by=""),
        ["sequence_by=''", "name of a column"],
    ),
    ("windows before", bm.PipelineError, lambda: PLAIN.versions(5), ["versions('5 seconds')", "leave the rest out"]),
    (
        "a trigger before",
        bm.PipelineError,
        lambda: CHANGES.trigger(Always()).versions(5),
        ["versions('5 seconds')", "key_by and where only", "first.then("],
    ),
    (
        "a window after versions",
        bm.PipelineError,
        lambda: RATES.window(bm.FixedWindows(5)),
        ["window(...) after versions(...)", "versions have no window", ".then("],
    ),
    (
        "a table of panes without timestamp",
        bm.PipelineError,
        lambda: TIMELESS.then(bm.Pipeline().key_by("team").versions(5)),
        ["versions('5 seconds')", "no start of validity", "TimestampCombiner.LATEST"],
    ),
    (
        "a value with the name of an output column",
        bm.PipelineError,
        lambda: CHANGES.versions(5, values=["Pane"]),
        ["'Pane'", "the output has a column of this name", "rename yours"],
    ),
    (
        "a key with the name of an output column",
        bm.PipelineError,
        lambda: START.key_by("valid_to").versions(5),
        ["'valid_to'", "the output has a column of this name", "rename yours"],
    ),
    (
        "a key among the values",
        bm.PipelineError,
        lambda: CHANGES.versions(5, values=["cur"]),
        ["'cur' is a key column", "leave it out"],
    ),
    (
        "a column with the name of an output column",
        bm.ColumnError,
        lambda: RATES.run(TestStream().add([{**CHANGE, "window": 3}])),
        ["'window'", "rename yours"],
    ),
    (
        "versions of changes",
        bm.PipelineError,
        lambda: CHANGES.changes().versions(5),
        ["versions('5 seconds')", "leave the rest out"],
    ),
    (
        "deleted is no boolean",
        bm.ColumnError,
        lambda: CHANGES.versions(5, deleted="rate").run(ONE_CHANGE),
        ["deleted='rate'", "int64", "must be a boolean"],
    ),
    (
        "a value that is not there",
        bm.ColumnError,
        lambda: CHANGES.versions(5, values=["price"]).run(ONE_CHANGE),
        ["values=['price']", "no column 'price'", "'rate'"],
    ),
    ("a key is a list", bm.ColumnError, lambda: START.key_by("tags").versions(5).run(ONE_CHANGE), ["'tags'", "cast"]),
    (
        "discarding after versions",
        bm.PipelineError,
        lambda: RATES.then(PLAIN_STAGE.trigger(Always()).discarding()),
        ["discarding over a stage that retracts", "accumulating()"],
    ),
    ("initial is a number", bm.ScriptError, lambda: RATES.run(ONE_CHANGE, initial=3), ["initial=3", "list of rows"]),
    ("initial of no table", bm.PipelineError, lambda: PLAIN.run(ONE_ROW, initial=[ROW]), ["initial=", ".versions("]),
    ("versions of no table", bm.PipelineError, lambda: PLAIN.state(ONE_ROW).versions(), ["no versioned table", "add"]),
    ("versions of another", bm.PipelineError, lambda: RATES.state(ONE_CHANGE).versions("x"), ["'x'", "leave it out"]),
    (
        "versions as of too early a time",
        bm.OptionError,
        lambda: RATES.state(ONE_CHANGE.advance_watermark_to(10**6)).versions(as_of=5),
        ["as_of=5", "1970-01-11 13:46:40", "longer history"],
    ),
]


@cases(REFUSED, "error", "call", "fragments")
def test_invalid_pipelines_are_refused(error, call, fragments):
    refused(error, call, fragments)


def test_a_sequence_without_order_is_refused():
    kinds = pa.schema([("ts", pa.timestamp("us")), ("cur", pa.string()), ("seq", pa.map_(pa.string(), pa.int64()))])
    flow = CHANGES.versions(5, sequence_by="seq").flow
    refused(bm.ColumnError, lambda: flow.bind({None: kinds}, shards=1), ["sequence_by='seq'", "no order", "cast"])
