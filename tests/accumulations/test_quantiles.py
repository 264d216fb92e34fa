import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import Median, Quantiles
from beamish.errors import OptionError
from tests.accumulations.laws import GROUPS, assert_laws, assert_same, rows_of, value, values


def percentile(members, p):
    position = (len(members) - 1) * p
    low, high = math.floor(position), math.ceil(position)
    if low == high or members[low] == members[high]:
        return float(members[low])
    return (high - position) * members[low] + (position - low) * members[high]


def test_quantiles_are_interpolated():
    assert value(Quantiles("x"), [4, 1, 2, 3, None], pa.int64()) == [1.75, 2.5, 3.25]
    assert value(Quantiles("x", (0, 1)), [4, 1, 2, 3], pa.int64()) == [1.0, 4.0]


def test_quantiles_of_nothing_are_null():
    assert value(Quantiles("x"), [None], pa.float64()) is None
    assert value(Median("x"), [], pa.float64()) is None


def test_median_of_decimals_is_double():
    from decimal import Decimal

    assert value(Median("x"), [Decimal("1.5"), Decimal("2.0")], pa.decimal128(5, 1)) == 1.75


@pytest.mark.parametrize("bad", [0.5, "0.5", (), (1.5,), (True,), (None,)])
def test_probabilities_are_numbers_from_0_to_1(bad):
    with pytest.raises(OptionError, match="Quantiles"):
        Quantiles("x", bad)


@given(rows_of(st.none() | st.floats(allow_nan=False, width=32)), st.integers(0, 30))
def test_quantiles_are_those_of_the_scalar_reference(rows, cut):
    wanted = (0.0, 0.1, 0.5, 0.99, 1.0)
    quantiles, medians = [], []
    for group in range(GROUPS):
        there = sorted(row[2] for row in rows if row[1] == group and row[2] is not None)
        quantiles.append([percentile(there, p) for p in wanted] if there else None)
        medians.append(percentile(there, 0.5) if there else None)
    assert_same(values(Quantiles("x", wanted), rows, pa.float64()), quantiles)
    assert_same(values(Median("x"), rows, pa.float64()), medians)
    assert_laws(Quantiles("x", wanted), rows, [pa.float64()], cut)
    assert_laws(Median("x"), rows, [pa.float64()], cut)


@pytest.mark.parametrize("p", [-0.01, -1, 1.01, 2, True, "0.5", None])
def test_a_probability_is_from_0_to_1(p):
    with pytest.raises(OptionError):
        Quantiles("x", [0.5, p])


def test_0_and_1_are_probabilities():
    assert Quantiles("x", [0, 1]) == Quantiles("x", (0, 1))
