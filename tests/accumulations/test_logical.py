import operator
from functools import reduce

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import BitAnd, BitOr, BitXor, BoolAnd, BoolOr, CountIf
from tests.accumulations.laws import GROUPS, assert_laws, assert_same, rows_of, value, values


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_bits_of_each_type_of_integers(type_):
    given_values = [6, 3, None, -1]
    assert [value(kind("x"), given_values, type_) for kind in (BitAnd, BitOr, BitXor)] == [2, -1, -6]


def test_nothing_is_null_and_zero_for_a_count():
    for kind, type_ in ((BitAnd, pa.int64()), (BitXor, pa.null()), (BoolAnd, pa.bool_()), (BoolOr, pa.null())):
        assert value(kind("x"), [None], type_) is None
    assert value(CountIf("x"), [None], pa.bool_()) == value(CountIf("x"), [None], pa.null()) == 0


@given(rows_of(st.none() | st.integers(-(2**63), 2**63 - 1)), st.integers(0, 30))
def test_bits_are_those_of_the_scalar_reference(rows, cut):
    operations = ((BitAnd("x"), operator.and_), (BitOr("x"), operator.or_), (BitXor("x"), operator.xor))
    for accumulation, operation in operations:
        there = [[row[2] for row in rows if row[1] == group and row[2] is not None] for group in range(GROUPS)]
        expected = [reduce(operation, numbers) if numbers else None for numbers in there]
        assert_same(values(accumulation, rows, pa.int64()), expected)
        assert_laws(accumulation, rows, [pa.int64()], cut)


@given(rows_of(st.none() | st.booleans()), st.integers(0, 30))
def test_booleans_are_those_of_the_scalar_reference(rows, cut):
    there = [[row[2] for row in rows if row[1] == group and row[2] is not None] for group in range(GROUPS)]
    for accumulation, expected in (
        (BoolAnd("x"), [all(flags) if flags else None for flags in there]),
        (BoolOr("x"), [any(flags) if flags else None for flags in there]),
        (CountIf("x"), [sum(flags) for flags in there]),
    ):
        assert_same(values(accumulation, rows, pa.bool_()), expected)
        assert_laws(accumulation, rows, [pa.bool_()], cut)
