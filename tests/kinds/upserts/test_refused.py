"""Upserts: what is refused, with the value, the rule and the fix."""

import pyarrow as pa
import pyarrow.compute as pc

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from tests.refused import PLAIN, RATES, RETRACTING, START, TIMELESS, cases, refused

KEYED = START.key_by("id")
UPSERTS = KEYED.upserts(deleted="gone", sequence_by="n")
ROW = {"ts": 1, "id": 1, "gone": False, "n": 1, "pane": "x", "tags": ["a"], "map": [{"a": 1}]}
AT_ONCE = {
    "a column that is a number": lambda: KEYED.upserts(deleted=5),
    "sequence_by without a name": lambda: KEYED.upserts(sequence_by=""),
    "keep_deleted 0": lambda: KEYED.upserts(deleted="gone", keep_deleted=0),
    "keep_deleted without deleted": lambda: KEYED.upserts(keep_deleted=5),
    "upserts after windows": PLAIN.upserts,
    "upserts of a merge": lambda: bm.merge(a=KEYED, b=KEYED).upserts(),
    "a condition before upserts": lambda: KEYED.where(pc.field("id") > 1).upserts(),
    "a condition after upserts": lambda: UPSERTS.where(pc.field("id") > 1),
    "windows after upserts": lambda: UPSERTS.window(bm.FixedWindows(5)),
    "having after upserts": lambda: UPSERTS.having(pc.field("n") > 1),
    "a mode after upserts": UPSERTS.accumulating,
    "a changelog before upserts": lambda: bm.Pipeline().from_changelog("flink").upserts(),
    "a changelog after upserts": lambda: UPSERTS.from_changelog("flink"),
    "a suppress after upserts": lambda: UPSERTS.suppress(bm.UntilTimeLimit(5, clock="event")),
}
TOGETHER = {
    "upserts without keys": START.upserts,
    "upserts of retractions": lambda: RETRACTING.then(bm.Pipeline().key_by("team").upserts()),
    "upserts of versions": lambda: RATES.then(bm.Pipeline().key_by("rate").upserts()),
    "upserts of panes without timestamp": lambda: TIMELESS.then(bm.Pipeline().key_by("team").upserts()),
    "a sequence that is a key": lambda: KEYED.upserts(sequence_by="id"),
    "a sequence of a reserved name": lambda: KEYED.upserts(sequence_by="__beamish_n"),
}
COLUMNS = {
    "a sequence that is missing": KEYED.upserts(sequence_by="offset"),
    "deleted that is a number": KEYED.upserts(deleted="n"),
    "upserts with a column called pane": KEYED.upserts(),
    "upserts by a list": START.key_by("tags").upserts(),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


@cases(TOGETHER)
def test_incompatible_options_are_rejected_before_anything_runs(name):
    refused(__file__, name, lambda: TOGETHER[name]().explain())


@cases(COLUMNS)
def test_a_column_of_the_wrong_type_or_name_is_rejected(name):
    refused(__file__, name, lambda: COLUMNS[name].run(TestStream().add([ROW])))


def test_a_checkpoint_with_another_order_is_rejected():
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("n", pa.int64())])}

    def opened(pipeline, store):
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    store = DictStore()
    opened(KEYED.upserts(), store).step([None], None, [])
    refused(__file__, "another sequence", lambda: opened(KEYED.upserts(sequence_by="n"), store))
    refused(__file__, "another span", lambda: opened(KEYED.upserts().forget_after("1 day"), store))
    refused(
        __file__, "upserts, then windows", lambda: opened(KEYED.window(bm.FixedWindows(9)).accumulate(n=Count()), store)
    )
