"""Arrays as rows (rules/stage-rows.md#explode)."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish import PaneChange, PaneKind
from beamish.accumulations import Collect, Count, Sum, TopNByKey
from beamish.kinds.refine import Refinement
from beamish.testing import TestStream
from beamish.triggers import Always

START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user")
PAGES = START.window(bm.FixedWindows(10)).accumulate(n=Count(), pages=Collect("page"))
ONE_USER = [
    {"ts": 1, "user": "ann", "page": "a"},
    {"ts": 2, "user": "ann", "page": "b"},
    {"ts": 3, "user": "ann", "page": None},
]
ALL = bm.Pipeline().key_by().window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting()


def shown(pipeline, *bundles):
    script = TestStream()
    for rows in bundles:
        script = script.add(rows)
    panes = pipeline.run(script.advance_watermark_to_infinity())
    return [(pane.change, pane.values) for pane in panes]


def test_rows_have_the_numbers_and_window_of_their_pane():
    first, second = PAGES.explode("pages").run(TestStream().add(ONE_USER).advance_watermark_to(10))
    assert (first.window, first.index, first.is_last, first.timestamp) == (
        second.window,
        second.index,
        second.is_last,
        second.timestamp,
    )
    assert first.sequence < second.sequence


def test_items_of_any_type_and_null_ones():
    places = START.window(bm.FixedWindows(10)).accumulate(top=TopNByKey(2, key="page", value="n")).explode("top")
    rows = [{"ts": 1, "user": "ann", "page": "a", "n": 5}, {"ts": 2, "user": "ann", "page": "b", "n": None}]
    found = [values["top"] for _, values in shown(places, rows)]
    assert found == [{"key": "a", "value": 5}]
    nested = START.upserts().explode("tags")
    tags = [{"x": 1, "y": [1, None]}, None, {"x": None, "y": []}]
    row = {"ts": 1, "user": "ann", "tags": tags}
    assert [values["tags"] for _, values in shown(nested, [row])] == tags
    assert shown(nested, [row], [{**row, "ts": 2, "tags": None}])[3:] == [
        (PaneChange.DELETE, {"ts": 1, "tags": item}) for item in tags
    ]


def test_it_applies_after_computed_columns_and_conditions():
    words = START.window(bm.FixedWindows(10)).accumulate(n=Count(), all=Collect("page"))
    split = words.with_columns(twice=pc.field("all")).having(pc.field("n") > 1).explode("twice")
    rows = [*ONE_USER, {"ts": 4, "user": "bob", "page": "c"}]
    assert [values["twice"] for _, values in shown(split, rows)] == ["a", "b"]


def test_a_field_of_an_item_is_named_by_its_path():
    items = START.key_by("order").upserts(sequence_by="n").explode("items")
    spent = items.then(ALL.accumulate(euros=Sum("items.price")))
    script = TestStream().add([{"ts": 1, "order": 7, "n": 0, "items": [{"id": 1, "price": 5}, {"id": 2, "price": 7}]}])
    script = script.add([{"ts": 1, "order": 7, "n": 1, "items": [{"id": 1, "price": 6}]}])
    assert [(pane.kind, pane.values["euros"]) for pane in spent.run(script)] == [
        (PaneKind.PANE, 12),
        (PaneKind.RETRACTION, 12),
        (PaneKind.PANE, 6),
    ]


@pytest.mark.parametrize(
    ("pipeline", "before"),
    [
        (START.over(bm.Preceding(5)).accumulate(last=Collect("page")), "last"),
        (START.window(bm.Rolling({"s": 10}, step=1)).accumulate(last=Collect("page")), "last_s"),
        (START.window({"a": bm.FixedWindows(5), "b": bm.FixedWindows(10)}).accumulate(last=Collect("page")), "last"),
    ],
    ids=["over", "rolling", "windowings"],
)
def test_other_stages_have_it(pipeline, before):
    plain = [item for _, values in shown(pipeline, ONE_USER) for item in values[before]]
    exploded = pipeline.explode(before)
    assert [values[before] for _, values in shown(exploded, ONE_USER)] == plain
    assert exploded.flow.gives.slot is None
    assert f".explode({before!r})" in repr(exploded)
    assert f"a row for each item of {before}; none if it is empty or null" in " ".join(exploded.explain().split())


def test_dropped_rows_pass_and_a_suppress_is_before():
    late = PAGES.trigger(Always()).accumulating_and_retracting().with_dropped().explode("pages")
    script = TestStream().add(ONE_USER[:1]).advance_watermark_to(10).add(ONE_USER[1:2])
    assert [pane.kind for pane in late.run(script)][-1] is PaneKind.DROPPED
    final = PAGES.trigger(Always()).accumulating().explode("pages").suppress(bm.UntilWindowCloses())
    script = TestStream().add(ONE_USER[:1]).add(ONE_USER[1:]).advance_watermark_to(10)
    assert [pane.values["pages"] for pane in final.run(script)] == ["a", "b"]


def test_no_rows_and_lists_in_slices():
    pages = pa.array([["z"], None, ["a", None], [], ["b"]], pa.large_list(pa.string())).slice(1)
    operator = PAGES.flow.bind(
        {None: pa.schema({"ts": pa.float64(), "user": pa.string(), "page": pa.string()})}, shards=1
    ).operator
    refinement = Refinement(operator.gives, {}, None, "pages")
    schema = operator.gives.schema
    rows = pa.Table.from_pylist([], schema)
    assert refinement.rows(rows).schema == refinement.gives.schema
    some = [
        {**dict.fromkeys(schema.names), "user": str(i), "pane": {"kind": "PANE", "change": "INSERT"}} for i in range(4)
    ]
    table = pa.Table.from_pylist(some, schema).set_column(schema.get_field_index("pages"), "pages", pages)
    found = refinement.rows(table)
    assert list(zip(found["user"].to_pylist(), found["pages"].to_pylist(), strict=True)) == [
        ("1", "a"),
        ("1", None),
        ("3", "b"),
    ]
