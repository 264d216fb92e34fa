"""Gaps: what is refused, with the value, the rule and the fix."""

import pyarrow as pa
import pyarrow.compute as pc

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from tests.refused import PLAIN, RATES, RETRACTING, ROW, START, TIMELESS, cases, refused

AT_ONCE = {
    "step 0": lambda: START.fill_gaps(0, by="last", within=1),
    "by mean": lambda: START.fill_gaps(1, by="mean", within=1),
    "within a part of a step": lambda: START.fill_gaps(10, by="last", within=5),
    "a million rows after one": lambda: START.fill_gaps(0.001, by="last", within="1 day"),
    "gaps after windows": lambda: PLAIN.fill_gaps(1, by="last", within=1),
    "windows after gaps": lambda: START.fill_gaps(1, by="last", within=1).window(bm.FixedWindows(9)),
    "a condition after gaps": lambda: START.fill_gaps(1, by="last", within=1).where(pc.field("id") > 1),
    "gaps, lateness in rows": lambda: START.fill_gaps(1, by="last", within=1).allowed_lateness(rows=3),
}
TOGETHER = {
    "gaps of a merge": lambda: bm.merge(a=START.key_by("k"), b=START.key_by("k")).fill_gaps(1, by="last", within=1),
    "gaps of retractions": lambda: RETRACTING.then(bm.Pipeline().fill_gaps(1, by="last", within=1)),
    "gaps of panes without timestamp": lambda: TIMELESS.then(bm.Pipeline().fill_gaps(1, by="last", within=1)),
    "gaps of versions": lambda: RATES.then(bm.Pipeline().fill_gaps(1, by="last", within=1)),
    "gaps of final results": lambda: (
        RETRACTING.accumulating().suppress(bm.UntilWindowCloses()).then(bm.Pipeline().fill_gaps(1, by="last", within=5))
    ),
}
COLUMNS = {
    "gaps of a key that is a list": START.key_by("tags").fill_gaps(1, by="last", within=1),
    "a column called filled": START.key_by("filled").fill_gaps(1, by="last", within=1),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


@cases(TOGETHER)
def test_incompatible_options_are_rejected_before_anything_runs(name):
    refused(__file__, name, lambda: TOGETHER[name]().explain())


@cases(COLUMNS)
def test_a_column_of_the_wrong_type_or_name_is_rejected(name):
    rows = TestStream().add([{**ROW, "filled": 1}])
    refused(__file__, name, lambda: COLUMNS[name].run(rows))


def test_a_checkpoint_with_another_grid_is_rejected():
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.int64())])}

    def opened(pipeline, store):
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    store, by_second = DictStore(), START.key_by("k").fill_gaps(1, by="last", within=5)
    opened(by_second, store).step([None], None, [])
    refused(
        __file__,
        "another step",
        lambda: opened(START.key_by("k").fill_gaps(2, by="last", within=5), store),
    )
    refused(__file__, "windows, then", lambda: opened(START.window(bm.FixedWindows(9)).accumulate(n=Count()), store))
