"""Windows of rows: what is refused, with the value, the rule and the fix."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, InnerJoin, Max
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always
from tests.refused import COUNTED, ONE_ROW, PLAIN, RETRACTING, START, refused

COUNTED_AT_ONCE = [
    (lambda: bm.CountWindows(0), ["CountWindows(size=0)", "whole number of rows"]),
    (lambda: bm.CountWindows(2.5), ["CountWindows(size=2.5)"]),
    (lambda: bm.CountWindows(size=True), ["CountWindows(size=True)"]),
    (lambda: bm.CountWindows("10 minutes"), ["CountWindows(size='10 minutes')", "whole number of rows"]),
    (lambda: bm.CountWindows(3, 0), ["CountWindows(period=0)"]),
    (lambda: bm.CountWindows(3, offset=0.5), ["CountWindows(offset=0.5)"]),
    (lambda: bm.CountWindows(3, over="all"), ["CountWindows(over='all')", "'key' or 'stream'"]),
    (lambda: bm.CountWindows(3, order_by=3), ["CountWindows(order_by=", "name of a column"]),
    (lambda: bm.CountWindows(3, order_by=""), ["CountWindows(order_by="]),
    (lambda: bm.CountWindows(3, numbered_by=["a"]), ["CountWindows(numbered_by=['a'])"]),
    (
        lambda: bm.CountWindows(3, order_by="a", numbered_by="b"),
        ["order_by=('a',), numbered_by='b'", "use one of the two"],
    ),
    (lambda: bm.CountWindows(3, delay=1), ["delay=1", "add numbered_by"]),
    (lambda: bm.CountWindows(3, numbered_by="a", delay=-1), ["CountWindows(delay=-1)"]),
    (lambda: bm.CountWindows(3, idle=0), ["CountWindows(idle)=0", "above 0"]),
    (lambda: bm.CountWindows(3, over="stream", idle=5), ["idle", "over='stream'"]),
    (lambda: bm.CountWindows(2**41), ["CountWindows(size=2199023255552)", "2^40"]),
    (lambda: bm.CountSessions(-1), ["CountSessions(others=-1)"]),
    (lambda: bm.CountSessions(2, delay=1), ["CountSessions(delay=1)", "numbered_by"]),
    (lambda: START.allowed_lateness(rows=-1), ["allowed_lateness(rows=-1)"]),
    (lambda: START.allowed_lateness(rows="5"), ["rows='5'"]),
    (lambda: START.allowed_lateness("1 hour", rows=5), ["'1 hour'", "rows=5"]),
    (START.retain, ["retain()", "retain(windows=100)"]),
    (lambda: START.retain(windows=0), ["retain(windows=0)", "at least 1"]),
    (lambda: START.retain(rows=2.5), ["retain(rows=2.5)"]),
    (lambda: START.retain(bytes=True), ["retain(bytes=True)"]),
    (lambda: START.forget_after(0), ["forget_after=0", "above 0"]),
    (lambda: START.forget_after("soon"), ["forget_after='soon'", "not a duration"]),
    (START.allowed_lateness, ["allowed_lateness(None, rows=None)", "a duration"]),
]


COUNTED_TOGETHER = [
    (lambda: COUNTED.allowed_lateness(5).explain(), ["of count windows", "allowed_lateness(rows=100)"]),
    (lambda: PLAIN.allowed_lateness(rows=5).explain(), ["its windows end at a time", "allowed_lateness('1 hour')"]),
    (lambda: COUNTED.window(bm.CountWindows(3, idle=5)).explain(), ["idle needs the rows' event time"]),
    (lambda: COUNTED.deduplicate("score", within=5).explain(), ["deduplicate(within=...) needs the rows' event time"]),
    (
        lambda: (
            bm.merge(a=bm.Pipeline().key_by("team"), b=bm.Pipeline().key_by("team"))
            .window(bm.CountWindows(3))
            .discarding()
            .accumulate(p=InnerJoin("a", "b", once=True, keep_for={"a": 3}))
            .explain()
        ),
        ["keep_for of a join needs the rows' event time", ".event_time(column, "],
    ),
    (
        lambda: COUNTED.timestamp_combiner(bm.TimestampCombiner.LATEST).explain(),
        ["timestamp_combiner", "needs the rows' event time"],
    ),
    (
        lambda: bm.Pipeline().window(bm.CountSessions(3)).accumulate(n=Count()).explain(),
        ["without keys", ".key_by(...)"],
    ),
    (
        lambda: (
            bm.merge(a=START.key_by("team"), b=START.key_by("team"))
            .window(bm.CountWindows(3, order_by="ts"))
            .accumulate(n=Count())
            .explain()
        ),
        ["of a merge", "ambiguous column 'ts'"],
    ),
    (
        lambda: PLAIN.window({"rows": bm.CountWindows(3), "time": bm.FixedWindows(5)}).explain(),
        ["'rows' are count windows, 'time' time windows", "a pipeline of its own"],
    ),
    (lambda: COUNTED.trigger(AfterCount(2)).explain(), ["add .discarding()"]),
    (
        lambda: COUNTED.discarding().trigger(AfterWatermark()).allowed_lateness(rows=3).explain(),
        ["allowed lateness '3 rows'", "would be dropped"],
    ),
    (
        lambda: PLAIN.retain(windows=3).suppress(bm.UntilWindowCloses()),
        ["retain(windows=3)", "does not close at a time"],
    ),
    (
        lambda: PLAIN.retain(windows=3).window(bm.GlobalWindow()).explain(),
        ["retain(windows=3)", "never evicted"],
    ),
    (
        lambda: PLAIN.forget_after(5).explain(),
        ["forget_after('5 seconds')", "end by themselves"],
    ),
    (lambda: COUNTED.forget_after(5).explain(), ["forget_after('5 seconds')", "idle='1 day'"]),
    (
        lambda: PLAIN.window(bm.GlobalWindow()).forget_after(5).suppress(bm.UntilWindowCloses()),
        ["forget_after('5 seconds')", "a returning key", "Never()"],
    ),
    (
        lambda: PLAIN.window(bm.GlobalWindow()).then(bm.Pipeline().accumulate(m=Max("n")).forget_after(5)).explain(),
        ["forget_after('5 seconds') of panes without timestamp", "timestamp_combiner"],
    ),
    (lambda: COUNTED.suppress(bm.UntilWindowCloses()).explain(), ["suppress(", "a count window closes with a row"]),
    (lambda: COUNTED.then(bm.Pipeline().accumulate(most=Max("n"))).explain(), ["panes have no row numbers"]),
    (
        lambda: COUNTED.then(bm.Pipeline().window(bm.FixedWindows(5)).accumulate(most=Max("n"))).explain(),
        ["their panes have no timestamp", "timestamp_combiner"],
    ),
    (
        lambda: COUNTED.then(bm.Pipeline().window(bm.CountWindows(5, idle=3)).accumulate(most=Max("n"))).explain(),
        ["over panes without timestamp"],
    ),
    (
        lambda: RETRACTING.then(bm.Pipeline().window(bm.CountWindows(5)).accumulate(most=Max("plays"))).explain(),
        ["rows that are retracted", "would renumber"],
    ),
]


COUNTED_COLUMNS = [
    (
        COUNTED.window(bm.CountWindows(3, numbered_by="name")),
        ["column 'name' is string", "whole numbers", "cast it to bigint"],
    ),
    (COUNTED.window(bm.CountWindows(3, numbered_by="nope")), ["there is no column 'nope'"]),
    (COUNTED.window(bm.CountWindows(3, order_by=["score", "nope"])), ["there is no column 'nope'"]),
]


@pytest.mark.parametrize(("call", "fragments"), COUNTED_AT_ONCE)
def test_an_invalid_option_of_count_windows_is_rejected_at_its_call(call, fragments):
    refused(bm.OptionError, call, fragments)


@pytest.mark.parametrize(("call", "fragments"), COUNTED_TOGETHER)
def test_options_incompatible_with_count_windows_are_rejected(call, fragments):
    refused(bm.PipelineError, call, fragments)


@pytest.mark.parametrize(("pipeline", "fragments"), COUNTED_COLUMNS)
def test_columns_by_which_rows_cannot_be_numbered_are_refused(pipeline, fragments):
    refused(bm.ColumnError, lambda: pipeline.run(ONE_ROW), fragments)


def test_a_column_without_order_orders_no_rows():
    rows = TestStream().add([{"team": "red", "of": {"a": 1}, "tags": None}])
    pipeline = COUNTED.window(bm.CountWindows(3, order_by="of"))
    schema = pa.schema([("team", pa.string()), ("of", pa.map_(pa.string(), pa.int64()))])
    refused(bm.ColumnError, lambda: pipeline.flow.completed.bind({None: schema}, shards=1), ["'of'", "has no order"])
    assert pipeline.run(rows) == []  # a struct has one


@pytest.mark.parametrize("number", [2**62 + 1, -(2**62) - 1, 2**63 - 1])
def test_a_number_too_far_from_0_stops_the_query(number):
    pipeline = COUNTED.window(bm.CountWindows(3, numbered_by="i"))
    rows = TestStream().add([{"team": "red", "i": number}])
    refused(bm.NumericOverflowError, lambda: pipeline.run(rows), [str(number), "within 2^62 of 0"])


@pytest.mark.parametrize("number", [2**62, -(2**62)])
def test_a_number_just_within_is_counted(number):
    pipeline = COUNTED.window(bm.CountWindows(3, numbered_by="i", offset=-7)).allowed_lateness(rows=2**40)
    (pane,) = pipeline.accumulating().trigger(Always()).run(TestStream().add([{"team": "red", "i": number}]))
    assert pane.window.start <= number < pane.window.end


@pytest.mark.parametrize(
    "second",
    [
        COUNTED.window(bm.CountWindows(4)),
        COUNTED.window(bm.CountWindows(3, over="stream")),
        COUNTED.window(bm.CountWindows(3, order_by="score")),
        COUNTED.window(bm.CountSessions(3)),
        PLAIN,
    ],
)
def test_a_checkpoint_of_other_windows_of_rows_is_refused(second):
    schema = {None: pa.schema([("ts", pa.timestamp("us")), ("team", pa.string()), ("score", pa.int64())])}
    store = DictStore()
    first, other = (one.flow.completed.bind(schema, shards=1).operator for one in (COUNTED, second))
    shard = first.open(store)
    rows = pa.table({"team": ["red"], "__beamish_event_time_us": pa.array([None], pa.int64())})
    shard.step([None], None, [payload for _, payload in first.pack(0, rows)])
    refused(bm.StateError, lambda: other.open(store), ["the checkpoint was written with"])
