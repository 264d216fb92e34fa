import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import CollectSet, CountDistinct, TopNByKey
from beamish.errors import OptionError
from tests.accumulations.kinds import KINDS, order
from tests.accumulations.laws import FEW, GROUPS, assert_laws, assert_same, rows_of, value, values


def test_collect_set_leaves_out_duplicates_and_nulls_and_sorts():
    assert value(CollectSet("x"), ["b", "a", None, "b"], pa.string()) == ["a", "b"]
    assert value(CollectSet("x"), [None], pa.null()) == []


def test_zeros_are_one_value_and_so_are_all_nan():
    given_values = [0.0, -0.0, math.nan, -math.nan, 1.0]
    assert_same(value(CollectSet("x"), given_values, pa.float64()), [0.0, 1.0, math.nan])
    assert value(CountDistinct("x"), given_values, pa.float64()) == 3


@pytest.mark.parametrize("given_values", [[-0.0], [0.0, -0.0], [-0.0, 0.0]])
def test_both_zeros_are_returned_as_positive_zero(given_values):
    assert repr(value(CollectSet("x"), given_values, pa.float32())) == "[0.0]"
    lists = [None, [], *([None, one] for one in given_values)]
    assert repr(value(CollectSet("x"), lists, pa.list_(pa.float64()))) == "[[], [None, 0.0]]"
    structs = [{"a": one, "b": None} for one in given_values]
    type_ = pa.struct([("a", pa.float64()), ("b", pa.list_(pa.float32()))])
    assert repr(value(CollectSet("x"), structs, type_)) == "[{'a': 0.0, 'b': None}]"
    rows = [(0, 0, one, -0.0) for one in given_values]
    assert (
        repr(values(TopNByKey(2, "k", "x"), rows, pa.float64(), pa.float64(), groups=1))
        == "[[{'key': 0.0, 'value': -0.0}]]"
    )


def test_count_distinct_of_several_columns_leaves_out_rows_with_a_null():
    rows = [(0, 0, 1, "a"), (0, 0, 1, "a"), (0, 0, 1, "b"), (0, 0, None, "b"), (0, 0, 1, None)]
    assert values(CountDistinct("x", "y"), rows, pa.int64(), pa.string(), groups=2) == [2, 0]


def test_count_distinct_needs_columns():
    with pytest.raises(OptionError, match="needs at least one column"):
        CountDistinct()
    with pytest.raises(OptionError, match="#2=3"):
        CountDistinct("x", 3)


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(data=st.data(), cut=st.integers(0, 30))
def test_distinct_values_are_those_of_the_scalar_reference(kind, data, cut):
    type_, strategy = KINDS[kind]
    rows = data.draw(rows_of(st.none() | strategy, st.none() | st.integers(0, 2)))
    sets, pairs = [], []
    for group in range(GROUPS):
        there = {}
        both = set()
        for row in rows:
            if row[1] == group and row[2] is not None:
                there.setdefault(repr(order(row[2])).replace("-0.0", "0.0"), row[2])
                if row[3] is not None:
                    both.add((repr(order(row[2])).replace("-0.0", "0.0"), row[3]))
        sets.append(sorted(there.values(), key=order))
        pairs.append(len(both))
    assert_same(values(CollectSet("x"), rows, type_), pa.array(sets, pa.list_(type_)).to_pylist())
    assert values(CountDistinct("x"), rows, type_) == [len(members) for members in sets]
    assert values(CountDistinct("x", "y"), rows, type_, pa.int64()) == pairs
    assert_laws(CollectSet("x"), rows, [type_], cut)
    assert_laws(CountDistinct("x", "y"), rows, [type_, pa.int64()], cut)


def test_distinct_repr_is_its_call():
    assert repr(CountDistinct("a", "b")) == "CountDistinct('a', 'b')"
