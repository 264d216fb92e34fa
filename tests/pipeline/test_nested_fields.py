"""Nested fields named like columns: a pipeline over fields of structs does what it does over columns (docs/rules/output.md#columns)."""

from collections.abc import Callable

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish import accumulations as a
from beamish.kernels.field_paths import value_of
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always, Repeatedly
from tests.pipeline.nested import DEEP, FLAT, nested
from tests.refused import raises_with


def script(rows, of=None):
    return (
        TestStream()
        .add(rows[:3], input=of)
        .advance_watermark_to(5)
        .add(rows[3:5], input=of)
        .advance_watermark_to(20)
        .add(rows[5:], input=of)
        .advance_watermark_to_infinity()
    )


def start(c, lateness=0):
    return bm.Pipeline().event_time(c("ts"), bm.BoundedOutOfOrderness(lateness))


def windows(c):
    return start(c).key_by(c("k")).window(bm.FixedWindows(10)).allowed_lateness(100).accumulating_and_retracting()


def table(c):
    return start(c).key_by(c("k"))


Made = Callable[[Callable[[str], str]], bm.Pipeline]
OF_ONE: dict[str, Made] = {
    "key": lambda c: windows(c).accumulate(n=a.Count()),
    "late and dropped": lambda c: windows(c).allowed_lateness(0).accumulate(n=a.Count()).with_dropped(),
    "two keys": lambda c: start(c).key_by(c("k"), c("id")).window(bm.Sessions(5)).accumulate(n=a.Count(c("v"))),
    "numbers": lambda c: windows(c).accumulate(
        n=a.Count(c("v")), s=a.Sum(c("v")), m=a.Mean(c("w")), lo=a.Min(c("v")), hi=a.Max(c("w")), md=a.Median(c("w"))
    ),
    "order": lambda c: windows(c).accumulate(
        f=a.First(c("v")),
        la=a.Last(c("v")),
        all=a.Collect(c("v"), sorted_by=c("w")),
        by=a.MinBy(c("v"), by=c("w")),
        top=a.TopN(2, c("w")),
        d=a.CountDistinct(c("id"), c("v")),
    ),
    "where": lambda c: windows(c).where((pc.field(c("v")) > 1) & pc.field(c("w")).is_valid()).accumulate(n=a.Count()),
    "duplicates of a window": lambda c: windows(c).deduplicate(c("id")).accumulate(n=a.Count()).with_dropped(),
    "duplicates": lambda c: (
        start(c, 100)
        .key_by(c("k"))
        .deduplicate(c("id"), within="1 day")
        .then(bm.Pipeline().key_by(c("k")).window(bm.FixedWindows(10)).accumulate(n=a.Count(), s=a.Sum(c("v"))))
    ),
    "versions": lambda c: table(c).versions("1 day", values=(c("v"), c("w")), deleted=c("gone"), sequence_by=c("id")),
    "count windows": lambda c: start(c).key_by(c("k")).window(bm.CountWindows(2)).accumulate(s=a.Sum(c("v"))),
    "rows numbered by a column": lambda c: (
        start(c).key_by(c("k")).window(bm.CountWindows(2, numbered_by=c("id"))).accumulate(s=a.Sum(c("v")))
    ),
    "rows in an order": lambda c: (
        start(c).key_by(c("k")).window(bm.CountWindows(2, order_by=[c("id")])).accumulate(s=a.Collect(c("v")))
    ),
    "several windows": lambda c: (
        start(c).key_by(c("k")).window({"f": bm.FixedWindows(10), "s": bm.Sessions(5)}).accumulate(s=a.Sum(c("v")))
    ),
    "trigger": lambda c: (
        windows(c).trigger(AfterWatermark(early=Repeatedly(AfterCount(1)), late=Always())).accumulate(s=a.Sum(c("v")))
    ),
    "errors": lambda c: windows(c).on_error("drop").accumulate(s=a.Reduce(max, c("v"))),
    "suppress": lambda c: windows(c).accumulate(s=a.Sum(c("v"))).suppress(bm.UntilWindowCloses()),
}


def shown(panes):
    """Panes without the names of keys and fields, and dropped rows as they came."""
    return [
        (
            pane.kind,
            tuple(pane.key.values()),
            pane.window,
            pane.timestamp,
            pane.reason,
            None if pane.reason else list(pane.values.values()),
        )
        for pane in panes
    ]


@pytest.mark.parametrize("name", OF_ONE)
def test_a_pipeline_over_nested_fields_is_that_over_columns(name):
    make = OF_ONE[name]
    flat = make(str).run(script(FLAT))
    assert flat
    assert shown(make(DEEP.__getitem__).run(script([nested(row) for row in FLAT]))) == shown(flat)


def test_changes_are_ordered_and_deleted_by_nested_fields():
    def made(c, rows):
        changes = table(c).changes(deleted=c("gone"), sequence_by=c("id")).suppress(bm.UntilTimeLimit(0, clock="event"))
        return [
            (pane.kind, tuple(pane.key.values()), value_of(pane.values, c("v")), value_of(pane.values, c("id")))
            for pane in changes.run(script(rows))
        ]

    assert made(DEEP.__getitem__, [nested(row) for row in FLAT]) == made(str, FLAT)


def test_dropped_rows_have_the_columns_of_the_input_and_the_key():
    rows = [nested(row) for row in FLAT]
    panes = OF_ONE["late and dropped"](DEEP.__getitem__).run(script(rows))
    (dropped,) = [pane.values for pane in panes if pane.reason]
    assert {name: value for name, value in dropped.items() if name != "r.s.k"} == rows[5]
    assert dropped["r.s.k"] == "b"


RIGHT = [
    {"ts": 2, "k": "b", "v": 9, "id": 2, "gone": False, "w": 0.0},
    {"ts": 1, "k": "a", "v": 8, "id": 1, "gone": False, "w": 1.0},
]
OF_TWO: dict[str, Made] = {
    "merge": lambda c: (
        bm.merge(left=table(c), right=table(c))
        .window(bm.FixedWindows(10))
        .accumulate(n=a.Count(), l=a.Sum(c("v")).of("left"), r=a.Max(c("w")).of("right"))
    ),
    "join": lambda c: (
        bm.merge(left=table(c).where(pc.field(c("v")) > 0), right=table(c))
        .window(bm.FixedWindows(10))
        .accumulate(p=a.InnerJoin("left", "right"))
        .then(bm.Pipeline().window(bm.FixedWindows(10)).accumulate(s=a.Sum(f"p.left.{c('v')}"), n=a.Count()))
    ),
    "as-of": lambda c: bm.as_of_join(
        left=start(c),
        right=table(c).versions("1 day", deleted=c("gone"), sequence_by=c("id")),
        on={c("k"): c("k")},
        how="left",
    ).then(
        bm.Pipeline()
        .key_by(f"right.{c('v')}")
        .where(pc.field(f"right.{c('w')}").is_valid())
        .window(bm.FixedWindows(10))
        .accumulate(n=a.Count(), s=a.Sum(f"right.{c('v')}"), own=a.Sum(c("v")))
    ),
}


def both(rows, right):
    return (
        TestStream()
        .add(right, input="right")
        .add(rows, input="left")
        .advance_watermark_to(30)
        .advance_watermark_to_infinity()
    )


@pytest.mark.parametrize("name", OF_TWO)
def test_a_join_over_nested_fields_is_that_over_columns(name):
    flat = OF_TWO[name](str).run(both(FLAT, RIGHT))
    deep = OF_TWO[name](DEEP.__getitem__).run(both([nested(row) for row in FLAT], [nested(row) for row in RIGHT]))
    assert flat
    assert sorted(shown(deep), key=repr) == sorted(shown(flat), key=repr)


PRICED = bm.as_of_join(
    orders=start(str), r=start(str).key_by("k").versions("1 day"), on={"k": "k"}
)  # the issue's: fields of a match
ORDERS = both([], [])


def priced(stage):
    rows = TestStream().add([{"ts": 1, "k": "a", "v": {"x": 2, "y": {"z": 5}}}], input="r")
    rows = rows.add([{"ts": 2, "k": "a"}, {"ts": 3, "k": "a"}], input="orders").advance_watermark_to_infinity()
    return [(pane.key, pane.values) for pane in PRICED.then(stage).run(rows)]


def test_a_stage_after_an_as_of_join_names_fields_of_the_match():
    stage = (
        bm.Pipeline()
        .window(bm.FixedWindows(10))
        .accumulate(s=a.Sum("r.v.x"), first=a.First("r.valid_from"), v=a.Last("r.v"))
    )
    ((_, values),) = priced(stage)
    assert values == {"s": 4, "first": values["first"], "v": {"x": 2, "y": {"z": 5}}}
    keyed = bm.Pipeline().key_by("r.v.y.z").window(bm.FixedWindows(10)).accumulate(n=a.Count())
    assert priced(keyed) == [({"r.v.y.z": 5}, {"n": 2})]


def test_having_and_computed_columns_name_fields():
    stage = bm.Pipeline().key_by("k").window(bm.FixedWindows(10)).accumulate(v=a.Last("r.v"))
    assert len(priced(stage.having(pc.field("v.x") == 2))) == 1
    assert len(priced(stage.having(pc.field("v.y.z") > 5))) == 0
    ((_, values),) = priced(stage.with_columns(twice=pc.field("v.y.z") * 2))
    assert values["twice"] == 10


def test_a_column_of_the_name_comes_first():
    rows = [{"ts": 1, "r.v": 1, "r": {"v": 10}}, {"ts": 2, "r.v": 2, "r": {"v": 20}}]
    sums = start(str).window(bm.FixedWindows(10)).accumulate(column=a.Sum("r.v"), field=a.Sum("`r`.v"))
    (pane,) = sums.run(TestStream().add(rows).advance_watermark_to_infinity())
    assert pane.values == {"column": 3, "field": 30}


def test_a_field_is_found_in_another_case_if_only_one_is():
    rows = TestStream().add([{"ts": 1, "R": {"v": 1, "W": 2, "w": 3}}]).advance_watermark_to_infinity()
    (pane,) = start(str).window(bm.FixedWindows(10)).accumulate(v=a.Sum("r.V"), w=a.Sum("r.w")).run(rows)
    assert pane.values == {"v": 1, "w": 3}
    ambiguous = start(str).window(bm.FixedWindows(10)).accumulate(v=a.Sum("q.W"))
    rows = TestStream().add([{"ts": 1, "q": {"w": 1, "ẇ": 2, "W": 3}}]).advance_watermark_to_infinity()
    assert ambiguous.run(rows)[0].values == {"v": 3}


@pytest.mark.parametrize(
    ("name", "fragments"),
    [
        ("r.x", ["no column 'r.x'", "the fields of 'r' are ['v', 'l']"]),
        ("r.v.x", ["'r.v' is int64, which has no fields"]),
        ("r.l.x", ["'r.l' is list<", "which has no fields"]),
        ("q.x", ["no column 'q.x'; the columns are ['ts', 'r']"]),
        ("r.", ["no column 'r.'"]),
        (".v", ["no column '.v'"]),
        ("r..v", ["no column 'r..v'"]),
        ("`r.v", ["no column '`r.v'"]),
        ("r.`v`x", ["no column"]),
    ],
)
def test_a_path_to_no_field_is_refused_with_what_there_is(name, fragments):
    rows = TestStream().add([{"ts": 1, "r": {"v": 1, "l": [{"x": 1}]}}])
    raises_with(
        bm.ColumnError, lambda: start(str).window(bm.FixedWindows(10)).accumulate(s=a.Count(name)).run(rows), fragments
    )
    raises_with(
        bm.ColumnError,
        lambda: start(str).key_by(name).window(bm.FixedWindows(10)).accumulate(s=a.Count()).run(rows),
        fragments,
    )


@pytest.mark.parametrize("name", ["r.x", "q.ts", "r.ts.x"])
def test_an_event_time_at_no_field_is_refused(name):
    pipeline = (
        bm.Pipeline().event_time(name, bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10)).accumulate(n=a.Count())
    )
    raises_with(bm.ColumnError, lambda: pipeline.run(TestStream().add([{"r": {"ts": 1}}])), [f"no column {name!r}"])


def test_an_event_time_in_a_null_struct_is_null():
    pipeline = start({"ts": "r.ts"}.__getitem__).window(bm.FixedWindows(10)).accumulate(n=a.Count()).with_dropped()
    panes = pipeline.run(TestStream().add([{"r": None}, {"r": {}}, {"r": {"ts": 3}}]).advance_watermark_to_infinity())
    assert [pane.reason for pane in panes] == [bm.DropReason.NULL_EVENT_TIME] * 2 + [None]
    assert [pane.reason for pane in pipeline.run(TestStream().add([{"r": None}]))] == [bm.DropReason.NULL_EVENT_TIME]


def test_the_fields_of_a_struct_that_no_row_has_are_null():
    rows = TestStream().add([{"ts": 1, "r": None}]).advance_watermark_to_infinity()
    (pane,) = start(str).key_by("r.k").window(bm.FixedWindows(10)).accumulate(v=a.Count("r.v.x")).run(rows)
    assert (pane.key, pane.values) == ({"r.k": None}, {"v": 0})


def test_rows_are_whole_without_the_fields_that_are_named():
    rows = TestStream().add([{"ts": 1, "r": {"v": 1}}], input="x").add([{"ts": 1, "r": {"v": 1}}], input="y")
    keyed = start(str).key_by("r.v")
    pairs = bm.merge(x=keyed, y=keyed).window(bm.FixedWindows(10)).accumulate(p=a.InnerJoin("x", "y"))
    (pane,) = pairs.run(rows.advance_watermark_to_infinity())
    assert pane.key == {"r.v": 1}
    assert pane.values["p"]["x"] == {"ts": 1, "r": {"v": 1}}


TIMES = bm.BoundedOutOfOrderness(0)
DEEP_ROWS = (
    TestStream()
    .add(
        [
            {"t": {"ts": 1}, "r": {"k": "a", "v": 2}},
            {"t": {"ts": 2}, "r": {"k": "a", "v": 5}},
            {"t": {"ts": 2}, "r": None},
        ]
    )
    .advance_watermark_to_infinity()
)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            "SELECT r.k, SUM(r.v) AS s FROM x WHERE r.v > 1 GROUP BY r.k HAVING SUM(r.v) > 5 EMIT CHANGES",
            [({"k": "a"}, {"s": 7})],
        ),
        (
            "SELECT r.k, LAST(r, TRUE) AS r FROM x GROUP BY r.k HAVING LAST(r, TRUE).v > 2 EMIT CHANGES",
            [({"k": "a"}, {"r": {"k": "a", "v": 5}})],
        ),
    ],
)
def test_a_statement_names_nested_fields(text, want):
    query = bm.sql(text, event_time="t.ts", watermark=TIMES)
    assert [(pane.key, pane.values) for pane in query.run(DEEP_ROWS)] == want


@pytest.mark.parametrize("key", ["of.id", "OF.`id`", "id"])
def test_a_statement_joins_by_nested_fields(key):
    users = bm.Pipeline().event_time("at.ts", TIMES).key_by(key).versions("1 day")
    rows = {"at": {"ts": 1}, "of": {"id": 1}, "id": 1, "p": {"name": "ann"}}
    script = TestStream().add([rows], input="users").add([{"ts": 2, "u": {"id": 1}, "n": 3}], input="clicks")
    on = "id" if key == "id" else "of.id"
    query = bm.sql(
        f"SELECT c.n, u.p.name AS name, u.{on} AS id FROM clicks c JOIN users u ON c.u.id = u.{on} WHERE u.p.name > 'a' EMIT CHANGES",
        event_time="ts",
        watermark=TIMES,
        tables={"users": users},
    )
    panes = query.run(script.advance_watermark_to_infinity())
    assert [pane.values for pane in panes] == [{"n": 3, "name": "ann", "id": 1}]


def test_a_table_keyed_by_a_nested_field_begins_with_rows():
    table = start(str).key_by("of.id").versions("1 day")
    panes = table.run(
        TestStream().add([{"ts": 2, "of": {"id": 1}, "v": 4}]), initial=[{"ts": 1, "of": {"id": 1}, "v": 3}]
    )
    assert {pane.key["of.id"] for pane in panes} == {1}
    assert max(pane.values["v"] for pane in panes if pane.kind is bm.PaneKind.PANE) == 4
    assert panes[0].values["v"] == 3


def test_a_window_of_a_nested_key_says_why_it_waits():
    pipeline = start({"ts": "t.ts"}.__getitem__).key_by("r.k").window(bm.FixedWindows(10)).accumulate(n=a.Sum("r.v"))
    said = pipeline.why(TestStream(DEEP_ROWS.events[:1]), key="a", window=0)
    assert "r.k='a' is open" in said
    assert "the watermark to reach its end" in said
    assert "r.k" in pipeline.explain()


def test_a_key_that_was_a_field_is_a_column_of_later_stages():
    counts = windows(DEEP.__getitem__).accumulate(n=a.Count())
    versions = counts.discarding().allowed_lateness(0).then(bm.Pipeline().key_by("n").versions("1 day"))
    rows = TestStream().add([nested(row) for row in FLAT[:2]]).advance_watermark_to_infinity()
    assert {pane.values["r.s.k"] for pane in versions.run(rows)} <= {"a", "b"}
    last = counts.discarding().allowed_lateness(0).then(bm.Pipeline().key_by("n").window(bm.FixedWindows(10)))
    (pane,) = last.accumulate(all=a.Fold([], names_of, result_type="array<string>")).run(rows)
    assert pane.values["all"] == ["n", "r.s.k"]


def names_of(seen, row):
    return sorted({*seen, *row})
