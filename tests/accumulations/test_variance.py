import math
import statistics

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import StdDev, Variance
from beamish.kernels.groups import Groups
from tests.accumulations.laws import GROUPS, assert_laws, assert_same, rows_of, value, values


def test_variance_of_a_single_value_is_null_unless_of_a_population():
    assert value(Variance("x"), [3.0, None], pa.float64()) is None
    assert value(Variance("x", population=True), [3.0, None], pa.float64()) == 0.0
    assert value(StdDev("x"), [], pa.float64()) is None


def test_variance_and_stddev_by_hand():
    given_values = [2, 4, 4, 4, 5, 5, 7, 9]
    assert value(Variance("x", population=True), given_values, pa.int64()) == 4.0
    assert value(StdDev("x", population=True), given_values, pa.int64()) == 2.0
    assert_same(value(Variance("x"), given_values, pa.int64()), 32 / 7, 1e-12)


def test_variance_of_close_values_far_from_zero_is_not_lost():
    assert value(Variance("x"), [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16], pa.float64()) == 30.0


def test_variance_with_an_infinite_value_is_nan():
    assert math.isnan(value(Variance("x"), [1.0, math.inf], pa.float64()))


@given(rows_of(st.none() | st.integers(-1000, 1000).map(float)), st.integers(0, 30))
def test_variance_is_that_of_the_scalar_reference(rows, cut):
    for accumulation, reference, fewest in (
        (Variance("x"), statistics.variance, 2),
        (Variance("x", population=True), statistics.pvariance, 1),
        (StdDev("x"), statistics.stdev, 2),
        (StdDev("x", population=True), statistics.pstdev, 1),
    ):
        expected = []
        for group in range(GROUPS):
            there = [row[2] for row in rows if row[1] == group and row[2] is not None]
            expected.append(float(reference(there)) if len(there) >= fewest else None)
        assert_same(values(accumulation, rows, pa.float64()), expected, 1e-6)
        assert_laws(accumulation, rows, [pa.float64()], cut, 1e-6)


def test_merging_an_empty_part_keeps_the_mean_exact():
    state = [pa.array([3, 0]), pa.array([0.1, 0.0]), pa.array([0.5, 0.0])]
    n, mean, squares = Variance("x").combine(Groups(np.zeros(2, np.int64), 1), state)
    assert (n.to_pylist(), mean.to_pylist(), squares.to_pylist()) == ([3], [0.1], [0.5])
