"""Values of a script's rows: none is changed, and what is refused is named by row and column."""

import datetime as dt
import itertools
from decimal import Decimal

import numpy as np
import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, Last
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.refused import raises_with
from tests.rubbish.python_values import FAMILIES, NULLS, RECORDS, REFUSED, TIMES, TOGETHER

DAY = dt.date(2024, 1, 1)
FIVE = dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC)
START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
GLOBAL = START.window(bm.GlobalWindow()).trigger(Always()).accumulating()
ALL = GLOBAL.accumulate(v=Collect("v"))
KEYED = START.key_by("v").window(bm.FixedWindows(10)).accumulate(n=Count())
TABLE = START.key_by("k").versions("1 day")
SQL = bm.sql(
    "SELECT k, COLLECT_LIST(v) AS v FROM rows GROUP BY k EMIT CHANGES",
    event_time="ts",
    watermark=bm.BoundedOutOfOrderness(0),
)
KEYS = [name for name in FAMILIES if name not in ("list", "dict")]


def script(*bundles):
    rows, at = TestStream(), itertools.count()
    for bundle in bundles:
        numbered = [(next(at), value) for value in bundle]
        rows = rows.add([{"ts": number / 10, "k": number, "v": value} for number, value in numbered])
    return rows


def as_values(*bundles):
    return ALL.run(script(*bundles))[-1].values["v"]


def as_keys(*bundles):
    return [pane.key["v"] for pane in KEYED.run(script(*bundles).advance_watermark_to_infinity())]


def in_versions(*bundles):
    rows = [{"ts": 1, "k": at, "v": value} for at, value in enumerate(bundles[0])]
    later = TestStream() if len(bundles) == 1 else script(*bundles[1:])
    return [pane.values["v"] for pane in TABLE.run(later, initial=rows)]


def in_sql(*bundles):
    return [value for pane in SQL.run(script(*bundles)) for value in pane.values["v"]]


WAYS = {"value": as_values, "key": as_keys, "initial": in_versions, "sql": in_sql}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bundles", [1, 2])
def test_two_types_in_a_column_are_refused_by_row(way, bundles):
    names = KEYS if way == "key" else list(FAMILIES)
    pairs = itertools.permutations(names, 2)
    for first, second in pairs:
        if frozenset({first, second}) in TOGETHER:
            continue
        one, other = FAMILIES[first].pairs[0][0], FAMILIES[second].pairs[0][0]
        given = [(one, other)] if bundles == 1 else [(one,), (other,)]
        rows = ["row 1", "row 2"]
        if way == "initial":
            rows = ["initial row 1", "initial row 2" if bundles == 1 else "row 1"]
        raises_with(
            bm.ScriptError,
            lambda given=given: WAYS[way](*given),
            ["column 'v'", f"types, {first} and {second}", f"({rows[0]})", f"({rows[1]})"],
        )


def test_a_date_before_a_datetime_is_refused_as_after_it():
    message = (
        "column 'v': values of different types, date and datetime: datetime.date(2024, 1, 1) (row 1) and "
        "datetime.datetime(2024, 1, 1, 5, 0, tzinfo=datetime.timezone.utc) (row 2); convert one of them"
    )
    raises_with(bm.ScriptError, lambda: as_values([DAY, FIVE]), [message])
    raises_with(bm.ScriptError, lambda: as_keys([DAY], [FIVE]), ["(row 1)", "(row 2)"])
    raises_with(bm.ScriptError, lambda: as_values([{"a": [FIVE]}, {"a": [None, DAY]}]), ["at ['a'][0]", "at ['a'][1]"])


@pytest.mark.parametrize("name", FAMILIES)
def test_values_and_keys_are_as_given(name):
    given = FAMILIES[name].pairs
    want = [one for _, one in given]
    assert as_values(*([value] for value, _ in given)) == as_values([value for value, _ in given]) == want
    assert in_sql(*([value] for value, _ in given)) == want
    if name in KEYS:
        assert len(as_keys([value for value, _ in given])) == len(set(want))
        assert set(as_keys([value for value, _ in given])) == set(want)


def test_ints_among_floats_and_decimals_are_equal_to_what_was_given():
    assert as_values([1.5, 2**53]) == [1.5, 2**53]
    assert as_keys([1, 1.0, 1.5]) == [1, 1.5]
    assert as_values([Decimal("0.5"), 3]) == [Decimal("0.5"), 3]


def test_a_row_of_a_table_is_named_beside_its_initial_rows():
    raises_with(bm.ScriptError, lambda: in_versions([1, 2], [3, 2**63]), ["column 'v': row 2 is 9223372036854775808"])
    raises_with(
        bm.ScriptError, lambda: in_versions([1, 2**63], [3]), ["column 'v': initial row 2 is 9223372036854775808"]
    )


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_value_is_named_by_row_and_column(name):
    make, reason = REFUSED[name]
    for run in WAYS.values():
        raises_with(bm.ScriptError, lambda run=run: run([None, make()]), ["column 'v'", "row 2 ", reason])


@pytest.mark.parametrize("null", NULLS, ids=repr)
def test_null_like_values_are_null(null):
    assert as_values([null, 1]) == as_values([None, 1])
    assert sorted(as_keys([1, null, 1]), key=str) == [1, None]
    assert in_sql([null]) == in_sql([None])
    assert ALL.run(TestStream().add([{"ts": null, "v": 1}])) == ALL.run(TestStream().add([{"ts": None, "v": 1}]))
    assert [pane.reason for pane in ALL.with_dropped().run(TestStream().add([{"ts": null, "v": 1}]))] == [
        bm.DropReason.NULL_EVENT_TIME
    ]


def test_records_of_pandas_with_a_null_time_are_rows():
    last = GLOBAL.accumulate(n=Count(), at=Last("at")).with_dropped()
    panes = last.run(TestStream().add(RECORDS))
    assert {pane.reason: pane.values["at"] for pane in panes} == {
        None: None,
        bm.DropReason.NULL_EVENT_TIME: dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    }


@pytest.mark.parametrize(("time", "reason"), TIMES.values(), ids=TIMES)
def test_an_invalid_time_is_named_by_row(time, reason):
    raises_with(
        bm.ScriptError,
        lambda: ALL.run(TestStream().add([{"ts": 1, "v": 1}]).add([{"ts": time}])),
        ["'ts'", "ow 2", reason],
    )
    for call in (TestStream().advance_watermark_to, TestStream().advance_processing_time_to):
        if time != float("inf"):
            raises_with(bm.ScriptError, lambda call=call: call(time), [call.__name__])


def test_nat_is_not_a_time():
    raises_with(bm.ScriptError, lambda: TestStream().advance_watermark_to(NULLS[1]), ["advance_watermark_to=NaT"])
    raises_with(bm.ScriptError, lambda: TestStream().step(clock=np.datetime64("NaT")), ["step(clock)"])


@pytest.mark.parametrize("name", [1, None, ("a", "b"), "\ud800"], ids=repr)
def test_a_column_name_is_text(name):
    raises_with(bm.ScriptError, lambda: TestStream().add([{"ts": 1}, {"ts": 1, name: 2}]), [f"a column {name!r}"])
    raises_with(
        bm.ScriptError, lambda: TABLE.run(TestStream(), initial=[{"ts": 1, "k": 1, name: 2}]), [f"a column {name!r}"]
    )


CHANGES = [
    ("flink", {"ts": 1, "op": ["+I"], "v": 1}, "op=['+I']"),
    ("flink", {"ts": 1, "op": NULLS[2], "v": 1}, "op=None"),
    ("diff", {"ts": 1, "_diff": 1.5, "v": 1}, "_diff=1.5"),
    ("debezium", {"op": {}, "before": None, "after": {"ts": 1}}, "op={}"),
    ("debezium", {"op": "c", "before": None, "after": 3}, "'after' is 3"),
    ("debezium", {"op": "c", "before": None, "after": NULLS[1]}, "'before' or 'after'"),
]


@pytest.mark.parametrize(("form", "row", "fragment"), CHANGES)
def test_an_invalid_change_is_named_by_row(form, row, fragment):
    pipeline = (
        bm.Pipeline().from_changelog(form).event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10))
    )
    good = {"flink": {"ts": 1, "op": "+I", "v": 1}, "diff": {"ts": 1, "_diff": np.int64(2), "v": 1}}
    first = good.get(form, {"op": "c", "before": None, "after": {"ts": 1, "v": 1}})
    raises_with(
        bm.ScriptError,
        lambda: pipeline.accumulate(n=Count()).run(TestStream().add([first, row])),
        ["row 2: ", fragment],
    )


def test_an_invalid_pane_is_named_by_row():
    pipeline = (
        bm.Pipeline().from_panes().event_time("timestamp", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10))
    )
    row = {"timestamp": 1, "pane": None, "window": None}
    raises_with(
        bm.ScriptError, lambda: pipeline.accumulate(n=Count()).run(TestStream().add([row])), ["row 1: ", "pane=None"]
    )
    row = {"timestamp": 1, "pane": {"kind": "PANE"}, "window": 3}
    raises_with(
        bm.ScriptError, lambda: pipeline.accumulate(n=Count()).run(TestStream().add([row])), ["row 1: ", "window=3"]
    )
