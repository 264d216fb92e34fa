"""Conditions and computed columns: what is refused, with the value, the rule and the fix."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Always, Repeatedly
from tests.refused import ONE_ORDER, ONE_ROW, ORDERS, PLAIN, RATES, RETRACTING, START, cases, joined, refused

# The call, and fragments of the message: value, rule, fix.
AT_ONCE = [
    ("where text", lambda: START.where("score > 3"), ["where(condition)='score > 3'", "pc.field('score') > 3"]),
    (
        "having function",
        lambda: PLAIN.having(len),
        ["having(condition)=<built-in function len>", "pyarrow.compute as pc"],
    ),
    ("with_columns number", lambda: PLAIN.with_columns(x=3), ["with_columns(x)=3", "pyarrow expression"]),
]


# Pipelines whose parts are fine but do not go together: refused when run, applied or explained.
TOGETHER = [
    (
        "a computed column called like the key",
        PLAIN.with_columns(team=pc.field("plays")),
        ["with_columns(team=...)", "is a key column too", "choose another"],
    ),
]


# Errors that depend on the columns.
COLUMNS = [
    ("where missing", PLAIN.where(pc.field("points") > 3), ["where((points > 3))", "No match", "score int64"]),
    ("where a number", PLAIN.where(pc.field("score") + 1), ["where(", "is int64", "must be a boolean"]),
    ("having missing", PLAIN.having(pc.field("score") > 3), ["having((score > 3))", "No match", "plays int64"]),
    (
        "with_columns of text",
        PLAIN.with_columns(x=pc.field("team") + 1),
        ["with_columns(x=", "no kernel", "team string"],
    ),
]


# The error, what is written, and what the message must hold.
REFUSED = [
    (
        "where of a merge",
        bm.PipelineError,
        lambda: bm.merge(a=START, b=START).where(pc.field("score") > 3),
        ["where((score > 3)) of a merge", "bm.merge(orders="],
    ),
    (
        "where of an as-of join",
        bm.PipelineError,
        lambda: joined().where(pc.field("rate") > 3),
        ["where((rate > 3)) of an as-of join", "on an input", ".then(bm.Pipeline().where("],
    ),
    (
        "where of an input of a column that is not there",
        bm.ColumnError,
        lambda: joined(ORDERS.where(pc.field("no") > 3)).run(ONE_ORDER.add([{"at": 1, "cur": "a"}], input="orders")),
        ["orders: where((no > 3))", "No match", "the columns are at"],
    ),
    (
        "having of versions",
        bm.PipelineError,
        lambda: RATES.having(pc.field("rate") > 3),
        ["having(...) after versions(...)", ".then("],
    ),
    (
        "having after a suppress",
        bm.PipelineError,
        lambda: RETRACTING.suppress(bm.UntilWindowCloses()).having(pc.field("plays") > 3),
        ["having(...) after suppress(...)", "call it before suppress"],
    ),
    (
        "having of an as-of join",
        bm.PipelineError,
        lambda: joined().having(pc.field("rate") > 3),
        ["having(...) of an as-of join", "df.filter(...)", ".then(bm.Pipeline().where(...)...)"],
    ),
]


@cases(AT_ONCE, "call", "fragments")
def test_an_invalid_option_is_rejected_at_its_call(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)


@cases(TOGETHER, "pipeline", "fragments")
def test_incompatible_options_are_rejected_before_anything_runs(pipeline, fragments):
    refused(bm.PipelineError, pipeline.explain, fragments)
    refused(bm.PipelineError, lambda: pipeline.run(TestStream()), fragments)


@cases(COLUMNS, "pipeline", "fragments")
def test_a_missing_or_mistyped_column_is_rejected(pipeline, fragments):
    refused(bm.ColumnError, lambda: pipeline.run(ONE_ROW), fragments)


@cases(REFUSED, "error", "call", "fragments")
def test_invalid_pipelines_are_refused(error, call, fragments):
    refused(error, call, fragments)


UPDATING = PLAIN.trigger(Always()).accumulating_and_retracting()


@pytest.mark.parametrize(
    "second", [UPDATING, UPDATING.having(pc.field("plays") > 2), UPDATING.where(pc.field("score") > 1)], ids=str
)
def test_a_checkpoint_of_other_conditions_is_refused(second):
    store = DictStore()
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("team", pa.string()), ("score", pa.int64())])}

    def opened(pipeline):
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    first = UPDATING.having(pc.field("plays") > 1)
    opened(first).step([None], None, [])
    opened(first.trigger(Repeatedly(AfterCount(2)))).step([None], None, [])
    refused(
        bm.StateError, lambda: opened(second), ["conditions and computed columns", "(plays > 1)", "keep the old one"]
    )
