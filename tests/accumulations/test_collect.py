import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import Collect
from tests.accumulations.kinds import KINDS, order
from tests.accumulations.laws import FEW, GROUPS, assert_laws, assert_same, rows_of, values


def test_collect_is_in_the_order_of_event_times_and_leaves_out_nulls():
    rows = [(5, 0, "c"), (1, 0, "a"), (3, 0, None), (3, 0, "b")]
    assert values(Collect("x"), rows, pa.string(), groups=2) == [["a", "b", "c"], []]


def test_collect_keeps_duplicates_and_orders_ties_by_value():
    rows = [(1, 0, 2), (1, 0, 1), (1, 0, 2)]
    assert values(Collect("x"), rows, pa.int64(), groups=1) == [[1, 2, 2]]


def test_collect_sorted_by_a_column_puts_its_nulls_first():
    rows = [(1, 0, "a", 9), (2, 0, "b", None), (3, 0, "c", 1)]
    assert values(Collect("x", sorted_by="y"), rows, pa.string(), pa.int64(), groups=1) == [["b", "c", "a"]]


def test_collect_descending_is_the_reversed_list():
    rows = [(1, 0, "a", 9), (2, 0, "b", None), (3, 0, "c", 1)]
    descending = Collect("x", sorted_by="y", descending=True)
    assert values(descending, rows, pa.string(), pa.int64(), groups=1) == [["a", "c", "b"]]
    assert values(Collect("x", descending=True), rows, pa.string(), groups=1) == [["c", "b", "a"]]


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(data=st.data(), cut=st.integers(0, 30))
def test_collect_is_that_of_the_scalar_reference(kind, data, cut):
    type_, strategy = KINDS[kind]
    by = st.none() | st.integers(0, 2)
    rows = data.draw(rows_of(st.none() | strategy, by))
    for accumulation, types, key in (
        (Collect("x"), [type_], lambda row: (row[0], order(row[2]))),
        (Collect("x", "y"), [type_, pa.int64()], lambda row: (order(row[3]), row[0], order(row[2]))),
    ):
        expected = []
        for group in range(GROUPS):
            there = [row for row in rows if row[1] == group and row[2] is not None]
            expected.append([row[2] for row in sorted(there, key=key)])
        assert_same(values(accumulation, rows, *types), pa.array(expected, pa.list_(type_)).to_pylist())
        assert_laws(accumulation, rows, types, cut)
        turned = attrs.evolve(accumulation, descending=True)
        assert_same(
            values(turned, rows, *types), [list(reversed(items)) for items in values(accumulation, rows, *types)]
        )
        assert_laws(turned, rows, types, cut)
