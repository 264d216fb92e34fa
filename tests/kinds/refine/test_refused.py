"""Conditions and computed columns: what is refused, with the value, the rule and the fix."""

import pyarrow as pa
import pyarrow.compute as pc

import beamish as bm
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Always, Repeatedly
from tests.refused import ONE_ORDER, ONE_ROW, ORDERS, PLAIN, RATES, RETRACTING, START, cases, joined, refused

AT_ONCE = {
    "where text": lambda: START.where("score > 3"),
    "having function": lambda: PLAIN.having(len),
    "with_columns number": lambda: PLAIN.with_columns(x=3),
    "explode of a number": lambda: PLAIN.explode(3),
}


# Pipelines whose parts are fine but do not go together: refused when run, applied or explained.
TOGETHER = {
    "a computed column called like the key": PLAIN.with_columns(team=pc.field("plays")),
}


# Errors that depend on the columns.
COLUMNS = {
    "where missing": PLAIN.where(pc.field("points") > 3),
    "where a number": PLAIN.where(pc.field("score") + 1),
    "having missing": PLAIN.having(pc.field("score") > 3),
    "explode of no array": PLAIN.explode("plays"),
    "explode of a missing column": PLAIN.explode("items"),
    "with_columns of text": PLAIN.with_columns(x=pc.field("team") + 1),
}


REFUSED = {
    "where of a merge": lambda: bm.merge(a=START, b=START).where(pc.field("score") > 3),
    "where of an as-of join": lambda: joined().where(pc.field("rate") > 3),
    "where of an input of a column that is not there": lambda: joined(ORDERS.where(pc.field("no") > 3)).run(
        ONE_ORDER.add([{"at": 1, "cur": "a"}], input="orders")
    ),
    "having of versions": lambda: RATES.having(pc.field("rate") > 3),
    "having after a suppress": lambda: RETRACTING.suppress(bm.UntilWindowCloses()).having(pc.field("plays") > 3),
    "explode of versions": lambda: RATES.explode("rate"),
    "having of an as-of join": lambda: joined().having(pc.field("rate") > 3),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


@cases(TOGETHER)
def test_incompatible_options_are_rejected_before_anything_runs(name):
    refused(__file__, name, TOGETHER[name].explain)
    refused(__file__, name, lambda: TOGETHER[name].run(TestStream()))


@cases(COLUMNS)
def test_a_missing_or_mistyped_column_is_rejected(name):
    refused(__file__, name, lambda: COLUMNS[name].run(ONE_ROW))


@cases(REFUSED)
def test_invalid_pipelines_are_refused(name):
    refused(__file__, name, REFUSED[name])


UPDATING = PLAIN.trigger(Always()).accumulating_and_retracting()


SECOND = {
    "conditions, then none": UPDATING,
    "conditions, then others": UPDATING.having(pc.field("plays") > 2),
    "conditions of panes, then of rows": UPDATING.where(pc.field("score") > 1),
}


@cases(SECOND)
def test_a_checkpoint_of_other_conditions_is_refused(name):
    store = DictStore()
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("team", pa.string()), ("score", pa.int64())])}

    def opened(pipeline):
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    first = UPDATING.having(pc.field("plays") > 1)
    opened(first).step([None], None, [])
    opened(first.trigger(Repeatedly(AfterCount(2)))).step([None], None, [])
    refused(__file__, name, lambda: opened(SECOND[name]))
