import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import BottomN, TopN, TopNByKey, TopRows
from beamish.errors import OptionError
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.accumulations.kinds import KINDS, order
from tests.accumulations.laws import FEW, GROUPS, assert_laws, assert_same, rows_of, value, values


def test_top_n_is_the_greatest_first_with_duplicates():
    assert value(TopN(3, "x"), [1, 9, None, 9, 5], pa.int64()) == [9, 9, 5]
    assert value(TopN(3, "x"), [1], pa.int64()) == [1]
    assert value(TopN(3, "x"), [], pa.int64()) == []


def test_bottom_n_is_the_least_first_with_duplicates():
    assert value(BottomN(3, "x"), [5, 9, None, 1, 1], pa.int64()) == [1, 1, 5]
    assert value(BottomN(3, "x"), [], pa.int64()) == []


def test_top_n_by_key_takes_each_key_once_with_its_greatest_value():
    rows = [(0, 0, "a", 1), (0, 0, "a", 7), (0, 0, "b", 7), (0, 0, None, 3), (0, 0, "c", None), (0, 0, "d", 9)]
    assert values(TopNByKey(4, "k", "x"), rows, pa.string(), pa.int64(), groups=1) == [
        [{"key": "d", "value": 9}, {"key": "a", "value": 7}, {"key": "b", "value": 7}, {"key": None, "value": 3}]
    ]


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "3"])
def test_n_is_a_whole_number_of_at_least_one(n):
    with pytest.raises(OptionError, match="whole number of at least 1"):
        TopN(n, "x")


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(data=st.data(), cut=st.integers(0, 30), n=st.integers(1, 4))
def test_top_is_that_of_the_scalar_reference(kind, data, cut, n):
    type_, strategy = KINDS[kind]
    rows = data.draw(rows_of(st.none() | strategy, st.none() | st.integers(0, 3)))
    tops, bottoms, by_key = [], [], []
    for group in range(GROUPS):
        there = [row for row in rows if row[1] == group and row[2] is not None]
        tops.append(sorted((row[2] for row in there), key=order, reverse=True)[:n])
        bottoms.append(sorted((row[2] for row in there), key=order)[:n])
        best = {}
        for row in sorted(there, key=lambda row: order(row[2])):
            best[row[3]] = row[2]
        ranked = sorted(sorted(best, key=order), key=lambda key: order(best[key]), reverse=True)[:n]
        by_key.append([{"key": key, "value": best[key]} for key in ranked])
    assert_same(values(TopN(n, "x"), rows, type_), pa.array(tops, pa.list_(type_)).to_pylist())
    assert_laws(TopN(n, "x"), rows, [type_], cut)
    assert_same(values(BottomN(n, "x"), rows, type_), pa.array(bottoms, pa.list_(type_)).to_pylist())
    assert_laws(BottomN(n, "x"), rows, [type_], cut)
    swapped = [(time, group, key, item) for time, group, item, key in rows]
    accumulation = TopNByKey(n, "k", "x")
    expected = pa.array(by_key, accumulation.value_type([pa.int64(), type_])).to_pylist()
    assert_same(values(accumulation, swapped, pa.int64(), type_), expected)
    assert_laws(accumulation, swapped, [pa.int64(), type_], cut)


SHOPS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("shop")
    .window(bm.GlobalWindow())
    .trigger(Always())
    .accumulating_and_retracting()
)


def first(accumulation, *bundles):
    script = TestStream()
    for bundle in bundles:
        script = script.add([{"ts": ts, "shop": "a", "price": price, "name": name} for ts, price, name in bundle])
    return [
        (str(pane.kind), pane.values["top"]["price"], pane.values["top"]["name"], pane.values["top"]["row_number"])
        for pane in SHOPS.only_updated_panes().accumulate(top=accumulation).run(script)
    ]


def test_first_rows_are_rows_of_output_which_are_retracted_when_they_change():
    rows = [(1, 5, "x"), (2, 7, "y"), (3, None, "z")], [(4, 1, "w")], [(5, 6, "v")]
    assert first(TopRows(2, by="price"), *rows) == [
        ("PANE", 7, "y", 1),
        ("PANE", 5, "x", 2),
        ("RETRACTION", 7, "y", 1),
        ("RETRACTION", 5, "x", 2),
        ("PANE", 7, "y", 1),
        ("PANE", 6, "v", 2),
    ]
    assert first(TopRows(2, by="price", least=True), *rows[:1]) == [("PANE", None, "z", 1), ("PANE", 5, "x", 2)]


def test_ties_of_first_rows_are_by_the_next_column_and_then_by_all():
    rows = [(2, 5, "x"), (1, 5, "y"), (1, 5, "x")]
    assert [name for _, _, name, _ in first(TopRows(3, by=["price", "name"]), rows)] == ["y", "x", "x"]
    script = TestStream().add([{"ts": ts, "shop": "a", "price": price, "name": name} for ts, price, name in rows])
    panes = SHOPS.accumulate(top=TopRows(3, by="price")).run(script)
    assert [(pane.values["top"]["ts"], pane.values["top"]["name"]) for pane in panes] == [(1, "x"), (1, "y"), (2, "x")]


@pytest.mark.parametrize("least", [[False, True], [True, False], [True, True], [False, False]])
def test_each_column_of_first_rows_has_a_direction(least):
    """The answers of plain Python: sorted by the last column first, since sorting is stable; None is before all."""
    rows = [(ts, price, name) for ts in (1, 2) for price in (None, 5, 7) for name in ("x", None, "y")]
    expected = sorted(rows, key=lambda row: (row[0], row[1] or 0, row[2] or ""))
    for place, ascends in ((2, least[1]), (1, least[0])):
        expected.sort(key=lambda row, place=place: (row[place] is not None, row[place] or 0), reverse=not ascends)
    script = TestStream().add([{"ts": ts, "shop": "a", "price": price, "name": name} for ts, price, name in rows])
    for top in (TopRows(7, by=["price", "name"], least=least), TopRows(18, by=["price", "name"], least=tuple(least))):
        found = [pane.values["top"] for pane in SHOPS.accumulate(top=top).run(script)]
        assert [(row["ts"], row["price"], row["name"]) for row in found] == expected[: top.n]
        assert [row["row_number"] for row in found] == list(range(1, top.n + 1))


def test_directions_that_are_alike_are_one():
    assert TopRows(1, by=["a", "b"], least=[True, True]) == TopRows(1, by=["a", "b"], least=True)
    mixed = TopRows(1, by=["a", "b"], least=[True, False])
    assert eval(repr(mixed), {"TopRows": TopRows}) == mixed


def test_a_removed_row_makes_room_for_the_next_one():
    changes = bm.Pipeline().from_changelog("spark").event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("shop")
    best = changes.window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting()
    rows = [{"ts": 1, "shop": "a", "price": price, "_change_type": "insert"} for price in (5, 7)]
    script = TestStream().add(rows).add([rows[1] | {"_change_type": "delete"}])
    panes = best.accumulate(top=TopRows(1, by="price")).run(script)
    assert [(str(pane.kind), pane.values["top"]["price"]) for pane in panes] == [
        ("PANE", 7),
        ("RETRACTION", 7),
        ("PANE", 5),
    ]


@pytest.mark.parametrize(
    ("name", "says"),
    [("cost", "no column 'cost'; columns are"), ("row_number", "has a column 'row_number' of its own")],
)
def test_columns_of_first_rows_are_checked(name, says):
    rows = [{"ts": 1, "shop": "a", "price": 1, **({name: 1} if name == "row_number" else {})}]
    with pytest.raises(bm.ColumnError, match=says):
        SHOPS.accumulate(top=TopRows(1, by=name)).run(TestStream().add(rows))
