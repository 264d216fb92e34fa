"""Deduplication: what is refused, with the value, the rule and the fix."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from tests.refused import ONE_ROW, PLAIN, RATES, RETRACTING, START, TIMELESS, cases, joined, refused

AT_ONCE = {
    "deduplicate by nothing": START.deduplicate,
    "deduplicate by 3": lambda: START.deduplicate(3),
    "deduplicate twice by one": lambda: START.deduplicate("a", "a"),
    "within 0": lambda: START.deduplicate("a", within=0),
    "within text": lambda: START.deduplicate("a", within="a day"),
}


# Pipelines whose parts are fine but do not go together: refused when run, applied or explained.
TOGETHER = {
    "deduplicate and where without windows": START.deduplicate("id", within=1).where(pc.field("id") > 1),
    "deduplicate without windows": START.deduplicate("id"),
    "deduplicate of a changelog": bm.Pipeline()
    .from_changelog()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .deduplicate("id", within=1),
    "deduplicate of a merge": bm.merge(a=START.key_by("k"), b=START.key_by("k"))
    .window(bm.FixedWindows(9))
    .deduplicate("id")
    .accumulate(n=Count()),
}


# Errors that depend on the columns.
COLUMNS = {
    "id missing": PLAIN.deduplicate("id"),
    "id of rows missing": START.deduplicate("id", within=1),
    "id is a list": PLAIN.deduplicate("tags"),
    "key of rows is a list": START.key_by("tags").deduplicate("score", within=1),
}


REFUSED = {
    "deduplicate twice": lambda: PLAIN.deduplicate("a").deduplicate("b"),
    "deduplicate of panes without timestamp": lambda: TIMELESS.then(bm.Pipeline().deduplicate("plays", within=9)),
    "deduplicate of what comes too late to be known": lambda: (
        RETRACTING.accumulating().suppress(bm.UntilWindowCloses()).then(bm.Pipeline().deduplicate("plays", within=5))
    ),
    "deduplicate over retractions": lambda: RETRACTING.then(
        bm.Pipeline().window(bm.FixedWindows(9)).deduplicate("plays").accumulate(n=Count()).accumulating()
    ),
    "deduplicate of versions": lambda: RATES.deduplicate("rate", within=1),
    "deduplicate of an as-of join": lambda: joined().deduplicate("rate", within=1),
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


@pytest.mark.parametrize("column", ["pane", "Window"])
def test_a_rows_column_that_the_output_has_of_its_own_is_refused(column):
    script = TestStream().add([{"ts": 1, "id": 1, column: 2}])
    refused(__file__, f"rows with a column {column}", lambda: START.deduplicate("id", within=1).run(script))


def test_a_checkpoint_with_another_deduplication_is_rejected():
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("a", pa.int64()), ("b", pa.int64())])}

    def opened(pipeline, store):
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    rows, windows = START.deduplicate("a", within=9), START.window(bm.FixedWindows(9)).accumulate(n=Count())
    store = DictStore()
    opened(START.key_by("a").deduplicate("b", within=9), store).step([None], None, [])
    refused(__file__, "rows of a key, then of none", lambda: opened(START.deduplicate("a", "b", within=9), store))
    refused(__file__, "rows, then windows", lambda: opened(windows.deduplicate("b", within=9), store))
    store = DictStore()
    opened(windows, store).step([None], None, [])
    refused(__file__, "windows, then rows", lambda: opened(rows, store))
    store = DictStore()
    opened(windows.deduplicate("a", within=9), store).step([None], None, [])
    held = dict(store)
    refused(__file__, "windows by a, then by b", lambda: opened(windows.deduplicate("b", within=9), store))
    assert dict(store) == held


IDS = {None: pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("team", pa.string()), ("score", pa.int64())])}
FIRST = {
    "windows": (PLAIN, PLAIN.deduplicate("id")),
    "rows": (START, START.deduplicate("id", within="1 hour")),
}


@pytest.mark.parametrize("of", FIRST)
def test_a_checkpoint_with_other_id_columns_is_rejected(of):
    store, (again, first) = DictStore(), FIRST[of]

    def opened(pipeline, schemas=IDS):
        return pipeline.flow.bind(schemas, shards=1).operator.open(store)

    if of == "windows":
        opened(PLAIN).step([None], None, [])  # it may be added
    opened(first).step([None], None, [])
    opened(first.with_dropped()).step([None], None, [])
    refused(__file__, f"ids of {of}, within another time", lambda: opened(again.deduplicate("id", within=7)))
    refused(__file__, f"ids of {of}, another column", lambda: opened(again.deduplicate("score", within="1 hour")))
    text = {None: pa.schema([("id", pa.string()) if field.name == "id" else field for field in IDS[None]])}
    refused(__file__, f"ids of {of}, another type", lambda: opened(first, text))
    if of == "windows":
        refused(__file__, "ids of windows, removed", lambda: opened(PLAIN))
