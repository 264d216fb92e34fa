"""Windows of rows: what is refused, with the value, the rule and the fix."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, InnerJoin, Max
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterEventTime, AfterWatermark, Always, Repeatedly
from tests.refused import COUNTED, ONE_ROW, PLAIN, RETRACTING, START, cases, refused

COUNTED_AT_ONCE = {
    "CountWindows(0)": lambda: bm.CountWindows(0),
    "CountWindows(2.5)": lambda: bm.CountWindows(2.5),
    "CountWindows(size=True)": lambda: bm.CountWindows(size=True),
    "CountWindows('10 minutes')": lambda: bm.CountWindows("10 minutes"),
    "CountWindows(3, 0)": lambda: bm.CountWindows(3, 0),
    "CountWindows(3, offset=0.5)": lambda: bm.CountWindows(3, offset=0.5),
    "CountWindows(3, over='all')": lambda: bm.CountWindows(3, over="all"),
    "CountWindows(3, order_by=3)": lambda: bm.CountWindows(3, order_by=3),
    "CountWindows(3, order_by='')": lambda: bm.CountWindows(3, order_by=""),
    "CountWindows(3, numbered_by=['a'])": lambda: bm.CountWindows(3, numbered_by=["a"]),
    "CountWindows(3, order_by='a', numbered_by='b')": lambda: bm.CountWindows(3, order_by="a", numbered_by="b"),
    "CountWindows(3, delay=1)": lambda: bm.CountWindows(3, delay=1),
    "CountWindows(3, numbered_by='a', delay=-1)": lambda: bm.CountWindows(3, numbered_by="a", delay=-1),
    "CountWindows(3, idle=0)": lambda: bm.CountWindows(3, idle=0),
    "CountWindows(3, over='stream', idle=5)": lambda: bm.CountWindows(3, over="stream", idle=5),
    "CountWindows(2 ** 41)": lambda: bm.CountWindows(2**41),
    "CountSessions(-1)": lambda: bm.CountSessions(-1),
    "CountSessions(2, delay=1)": lambda: bm.CountSessions(2, delay=1),
    "START.allowed_lateness(rows=-1)": lambda: START.allowed_lateness(rows=-1),
    "START.allowed_lateness(rows='5')": lambda: START.allowed_lateness(rows="5"),
    "START.allowed_lateness('1 hour', rows=5)": lambda: START.allowed_lateness("1 hour", rows=5),
    "START.retain": START.retain,
    "START.retain(windows=0)": lambda: START.retain(windows=0),
    "START.retain(rows=2.5)": lambda: START.retain(rows=2.5),
    "START.retain(bytes=True)": lambda: START.retain(bytes=True),
    "START.forget_after(0)": lambda: START.forget_after(0),
    "START.forget_after('soon')": lambda: START.forget_after("soon"),
    "START.allowed_lateness": START.allowed_lateness,
}


COUNTED_TOGETHER = {
    "of rows by event time": lambda: COUNTED.trigger(Repeatedly(AfterEventTime(5))).explain(),
    "without event time, by event time": lambda: (
        bm.Pipeline().window(bm.GlobalWindow()).trigger(Repeatedly(AfterEventTime(5))).accumulate(n=Count()).explain()
    ),
    "of rows 0": lambda: COUNTED.allowed_lateness(5).explain(),
    "of rows 1": lambda: PLAIN.allowed_lateness(rows=5).explain(),
    "of rows 2": lambda: COUNTED.window(bm.CountWindows(3, idle=5)).explain(),
    "of rows 3": lambda: COUNTED.deduplicate("score", within=5).explain(),
    "of rows 4": lambda: (
        bm.merge(a=bm.Pipeline().key_by("team"), b=bm.Pipeline().key_by("team"))
        .window(bm.CountWindows(3))
        .discarding()
        .accumulate(p=InnerJoin("a", "b", once=True, keep_for={"a": 3}))
        .explain()
    ),
    "of rows 5": lambda: COUNTED.timestamp_combiner(bm.TimestampCombiner.LATEST).explain(),
    "of rows 6": lambda: bm.Pipeline().window(bm.CountSessions(3)).accumulate(n=Count()).explain(),
    "of rows 7": lambda: (
        bm.merge(a=START.key_by("team"), b=START.key_by("team"))
        .window(bm.CountWindows(3, order_by="ts"))
        .accumulate(n=Count())
        .explain()
    ),
    "of rows 8": lambda: PLAIN.window({"rows": bm.CountWindows(3), "time": bm.FixedWindows(5)}).explain(),
    "of rows 9": lambda: COUNTED.trigger(AfterCount(2)).explain(),
    "of rows 10": lambda: COUNTED.discarding().trigger(AfterWatermark()).allowed_lateness(rows=3).explain(),
    "of rows 11": lambda: PLAIN.retain(windows=3).suppress(bm.UntilWindowCloses()),
    "of rows 12": lambda: PLAIN.retain(windows=3).window(bm.GlobalWindow()).explain(),
    "of rows 13": lambda: PLAIN.forget_after(5).explain(),
    "of rows 14": lambda: COUNTED.forget_after(5).explain(),
    "of rows 15": lambda: PLAIN.window(bm.GlobalWindow()).forget_after(5).suppress(bm.UntilWindowCloses()),
    "of rows 16": lambda: (
        PLAIN.window(bm.GlobalWindow()).then(bm.Pipeline().accumulate(m=Max("n")).forget_after(5)).explain()
    ),
    "of rows 17": lambda: COUNTED.suppress(bm.UntilWindowCloses()).explain(),
    "of rows 18": lambda: COUNTED.then(bm.Pipeline().accumulate(most=Max("n"))).explain(),
    "of rows 19": lambda: COUNTED.then(bm.Pipeline().window(bm.FixedWindows(5)).accumulate(most=Max("n"))).explain(),
    "of rows 20": lambda: COUNTED.then(
        bm.Pipeline().window(bm.CountWindows(5, idle=3)).accumulate(most=Max("n"))
    ).explain(),
    "of rows 21": lambda: RETRACTING.then(
        bm.Pipeline().window(bm.CountWindows(5)).accumulate(most=Max("plays"))
    ).explain(),
}


COUNTED_COLUMNS = {
    "COUNTED.window(CountWindows(3, numbered_by='name'))": COUNTED.window(bm.CountWindows(3, numbered_by="name")),
    "COUNTED.window(CountWindows(3, numbered_by='nope'))": COUNTED.window(bm.CountWindows(3, numbered_by="nope")),
    "COUNTED.window(CountWindows(3, order_by=['score', 'nope']))": COUNTED.window(
        bm.CountWindows(3, order_by=["score", "nope"])
    ),
}


@cases(COUNTED_AT_ONCE)
def test_an_invalid_option_of_count_windows_is_rejected_at_its_call(name):
    refused(__file__, name, COUNTED_AT_ONCE[name])


@cases(COUNTED_TOGETHER)
def test_options_incompatible_with_count_windows_are_rejected(name):
    refused(__file__, name, COUNTED_TOGETHER[name])


@cases(COUNTED_COLUMNS)
def test_columns_by_which_rows_cannot_be_numbered_are_refused(name):
    refused(__file__, name, lambda: COUNTED_COLUMNS[name].run(ONE_ROW))


def test_a_column_without_order_orders_no_rows():
    rows = TestStream().add([{"team": "red", "of": {"a": 1}, "tags": None}])
    pipeline = COUNTED.window(bm.CountWindows(3, order_by="of"))
    schema = pa.schema([("team", pa.string()), ("of", pa.map_(pa.string(), pa.int64()))])
    refused(__file__, "rows by a map", lambda: pipeline.flow.completed.bind({None: schema}, shards=1))
    assert pipeline.run(rows) == []  # a struct has one


@pytest.mark.parametrize("number", [2**62 + 1, -(2**62) - 1, 2**63 - 1])
def test_a_number_too_far_from_0_stops_the_query(number):
    pipeline = COUNTED.window(bm.CountWindows(3, numbered_by="i"))
    rows = TestStream().add([{"team": "red", "i": number}])
    refused(__file__, f"rows numbered {number}", lambda: pipeline.run(rows))


@pytest.mark.parametrize("number", [2**62, -(2**62)])
def test_a_number_just_within_is_counted(number):
    pipeline = COUNTED.window(bm.CountWindows(3, numbered_by="i", offset=-7)).allowed_lateness(rows=2**40)
    (pane,) = pipeline.accumulating().trigger(Always()).run(TestStream().add([{"team": "red", "i": number}]))
    assert pane.window.start <= number < pane.window.end


SECOND = {
    "rows, then more of them": COUNTED.window(bm.CountWindows(4)),
    "rows of a key, then of the stream": COUNTED.window(bm.CountWindows(3, over="stream")),
    "rows, then in order": COUNTED.window(bm.CountWindows(3, order_by="score")),
    "rows, then sessions of rows": COUNTED.window(bm.CountSessions(3)),
    "rows, then times": PLAIN,
}


@cases(SECOND)
def test_a_checkpoint_of_other_windows_of_rows_is_refused(name):
    schema = {None: pa.schema([("ts", pa.timestamp("us")), ("team", pa.string()), ("score", pa.int64())])}
    store = DictStore()
    first, other = (one.flow.completed.bind(schema, shards=1).operator for one in (COUNTED, SECOND[name]))
    shard = first.open(store)
    rows = pa.table({"team": ["red"], "__beamish_event_time_us": pa.array([None], pa.int64())})
    shard.step([None], None, [payload for _, payload in first.pack(0, rows)])
    refused(__file__, name, lambda: other.open(store))
