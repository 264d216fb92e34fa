"""Deduplication: what is refused, with the value, the rule and the fix."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from tests.refused import ONE_ROW, PLAIN, RATES, RETRACTING, START, TIMELESS, cases, joined, refused

# The call, and fragments of the message: value, rule, fix.
AT_ONCE = [
    ("deduplicate by nothing", START.deduplicate, ["deduplicate()", ".deduplicate('event_id')"]),
    ("deduplicate by 3", lambda: START.deduplicate(3), ["deduplicate(3)", "name of a column"]),
    ("deduplicate twice by one", lambda: START.deduplicate("a", "a"), ["'a' is repeated", "once"]),
    ("within 0", lambda: START.deduplicate("a", within=0), ["deduplicate('a'): within=0", "above 0"]),
    ("within text", lambda: START.deduplicate("a", within="a day"), ["within='a day'", "'10 minutes'"]),
]


# Pipelines whose parts are fine but do not go together: refused when run, applied or explained.
TOGETHER = [
    (
        "deduplicate and where without windows",
        START.deduplicate("id", within=1).where(pc.field("id") > 1),
        ["deduplicate('id', within='1 second') without windows", "filter the DataFrame", ".then(bm.Pipeline()...)"],
    ),
    ("deduplicate without windows", START.deduplicate("id"), ["deduplicate('id') without windows", "within='1 hour'"]),
    (
        "deduplicate of a changelog",
        bm.Pipeline().from_changelog().event_time("ts", bm.BoundedOutOfOrderness(0)).deduplicate("id", within=1),
        ["deduplicate('id', within='1 second')", "retracted", "a table holds each row once"],
    ),
    (
        "deduplicate of a merge",
        bm.merge(a=START.key_by("k"), b=START.key_by("k"))
        .window(bm.FixedWindows(9))
        .deduplicate("id")
        .accumulate(n=Count()),
        ["deduplicate('id') of a merge", "deduplicate an input", "bm.merge(orders="],
    ),
]


# Errors that depend on the columns.
COLUMNS = [
    ("id missing", PLAIN.deduplicate("id"), ["deduplicate('id')", "no column 'id'", "'score'"]),
    ("id of rows missing", START.deduplicate("id", within=1), ["deduplicate('id', within='1 second')", "'score'"]),
    ("id is a list", PLAIN.deduplicate("tags"), ["deduplicate('tags')", "'tags' is list", "cast it to a string"]),
    ("key of rows is a list", START.key_by("tags").deduplicate("score", within=1), ["key_by('tags')", "cast"]),
]


# The error, what is written, and what the message must hold.
REFUSED = [
    (
        "deduplicate twice",
        bm.PipelineError,
        lambda: PLAIN.deduplicate("a").deduplicate("b"),
        ["deduplicate('b')", "already", "in one call"],
    ),
    (
        "deduplicate of panes without timestamp",
        bm.PipelineError,
        lambda: TIMELESS.then(bm.Pipeline().deduplicate("plays", within=9)),
        ["deduplicate('plays', within='9 seconds')", "without timestamp", "timestamp_combiner"],
    ),
    (
        "deduplicate of what comes too late to be known",
        bm.PipelineError,
        lambda: (
            RETRACTING.accumulating()
            .suppress(bm.UntilWindowCloses())
            .then(bm.Pipeline().deduplicate("plays", within=5))
        ),
        ["deduplicate('plays', within='5 seconds')", "5 seconds past their time", "longer within"],
    ),
    (
        "deduplicate over retractions",
        bm.PipelineError,
        lambda: RETRACTING.then(
            bm.Pipeline().window(bm.FixedWindows(9)).deduplicate("plays").accumulate(n=Count()).accumulating()
        ),
        ["deduplicate('plays')", "retracted", "earlier stage"],
    ),
    (
        "deduplicate of versions",
        bm.PipelineError,
        lambda: RATES.deduplicate("rate", within=1),
        ["deduplicate(...) after versions(...)", ".then("],
    ),
    (
        "deduplicate of an as-of join",
        bm.PipelineError,
        lambda: joined().deduplicate("rate", within=1),
        ["deduplicate(...) of an as-of join", "deduplicate the rows before", ".then(...)"],
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


def test_a_rows_column_that_the_output_has_of_its_own_is_refused():
    script = TestStream().add([{"ts": 1, "id": 1, "pane": 2}])
    words = ["deduplicate('id', within='1 second')", "'pane'", "rename yours"]
    refused(bm.ColumnError, lambda: START.deduplicate("id", within=1).run(script), words)
    script = TestStream().add([{"ts": 1, "id": 1, "Window": 2}])
    refused(bm.ColumnError, lambda: START.deduplicate("id", within=1).run(script), ["'Window'", "rename yours"])


def test_a_checkpoint_with_another_deduplication_is_rejected():
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("a", pa.int64()), ("b", pa.int64())])}

    def opened(pipeline, store):
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    rows, windows = START.deduplicate("a", within=9), START.window(bm.FixedWindows(9)).accumulate(n=Count())
    store = DictStore()
    opened(START.key_by("a").deduplicate("b", within=9), store).step([None], None, [])
    words = ["keys ['a']", "now has []", "keep the old one"]
    refused(bm.StateError, lambda: opened(START.deduplicate("a", "b", within=9), store), words)
    words = [
        "a stage of deduplication without windows",
        "now has a stage with windows",
        "keep the stage as it was",
    ]
    refused(bm.StateError, lambda: opened(windows.deduplicate("b", within=9), store), words)
    store = DictStore()
    opened(windows, store).step([None], None, [])
    refused(
        bm.StateError,
        lambda: opened(rows, store),
        ["has a stage with windows", "now has a stage of deduplication without windows", "would be lost"],
    )
    store = DictStore()
    opened(windows.deduplicate("a", within=9), store).step([None], None, [])
    held = dict(store)
    refused(
        bm.StateError, lambda: opened(windows.deduplicate("b", within=9), store), ["deduplicate('b'", "keep the old"]
    )
    assert dict(store) == held


IDS = {None: pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("team", pa.string()), ("score", pa.int64())])}


@pytest.mark.parametrize("first", [PLAIN.deduplicate("id"), START.deduplicate("id", within="1 hour")], ids=str)
def test_a_checkpoint_with_other_id_columns_is_rejected(first):
    store = DictStore()

    def opened(pipeline, schemas=IDS):
        return pipeline.flow.bind(schemas, shards=1).operator.open(store)

    if first.flow.stage.options == PLAIN.deduplicate("id").flow.stage.options:
        opened(PLAIN).step([None], None, [])  # it may be added
    opened(first).step([None], None, [])
    opened(first.with_dropped()).step([None], None, [])
    again = PLAIN if hasattr(first.flow.stage.options, "deduplication") else START
    for second in (again.deduplicate("id", within=7), again.deduplicate("score", within="1 hour")):
        refused(
            bm.StateError, lambda second=second: opened(second), ["within" if second is first else "id", "keep the old"]
        )
    text = {None: pa.schema([("id", pa.string()) if field.name == "id" else field for field in IDS[None]])}
    refused(bm.StateError, lambda: opened(first, text), ["int64", "string", "keep the old"])
    if again is PLAIN:
        refused(
            bm.StateError, lambda: opened(PLAIN), ["deduplicate('id') of id int64", "now has none", "keep the old one"]
        )
