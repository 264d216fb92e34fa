import math

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from beamish.accumulations import Correlation, Covariance, Kurtosis, LinearRegression, Skewness
from tests.accumulations.laws import GROUPS, assert_laws, assert_same, rows_of, value, values
from tests.twin.accumulations import Row, value_of

DOUBLE = pa.float64()
LINE = LinearRegression("y", "x")
ALL = [
    Skewness("x"),
    Kurtosis("x"),
    Covariance("x", "y"),
    Covariance("x", "y", population=True),
    Correlation("x", "y"),
    LINE,
]


def test_shapes_by_hand():
    assert_same(value(Skewness("x"), [1, 2, 7, None], pa.int64()), 0.6309038567106239, 1e-12)
    assert_same(value(Kurtosis("x"), [1.0, 2.0, 7.0], DOUBLE), -1.5, 1e-12)


def test_equal_values_have_no_shape_no_correlation_and_no_line():
    assert value(Skewness("x"), [0.1, 0.1, 0.1], DOUBLE) is None
    assert value(Kurtosis("x"), [], DOUBLE) is None
    rows = [(0, 0, 0.1, 1.0), (0, 0, 0.1, 2.0), (0, 0, 0.1, 4.0)]
    assert values(Correlation("x", "y"), rows, DOUBLE, DOUBLE, groups=1) == [None]
    (line,) = values(LINE, rows, DOUBLE, DOUBLE, groups=1)
    assert (line["count"], line["slope"], line["intercept"], line["r2"], line["avgx"]) == (3, None, None, None, 0.1)


def test_a_line_through_equal_y_fits():
    rows = [(0, 0, 1.0, 2.0), (0, 0, 2.0, 2.0), (0, 0, 4.0, 2.0)]
    (line,) = values(LINE, rows, DOUBLE, DOUBLE, groups=1)
    assert (line["slope"], line["intercept"], line["r2"]) == (0.0, 2.0, 1.0)


def test_rows_without_one_of_both_do_not_count():
    rows = [(0, 0, 1.0, None), (0, 0, None, 5.0), (0, 0, 1.0, 2.0), (0, 0, 3.0, 8.0)]
    (line,) = values(LINE, rows, DOUBLE, DOUBLE, groups=1)
    assert (line["count"], line["slope"], line["intercept"], line["r2"]) == (2, 3.0, -1.0, 1.0)
    assert values(Covariance("x", "y"), rows, DOUBLE, DOUBLE, groups=1) == [6.0]


def test_an_infinite_value_gives_nan():
    rows = [(0, 0, 1.0, math.inf), (0, 0, 2.0, 3.0)]
    assert all(map(math.isnan, values(Covariance("x", "y"), rows, DOUBLE, DOUBLE, groups=1)))
    assert math.isnan(value(Skewness("x"), [1.0, math.inf], DOUBLE))


def test_close_values_far_from_zero_keep_their_shape():
    near, far = [4.0, 7.0, 13.0, 16.0, 40.0], [1e9 + x for x in (4, 7, 13, 16, 40)]
    for kind in (Skewness, Kurtosis):
        assert_same(value(kind("x"), far, DOUBLE), value(kind("x"), near, DOUBLE), 1e-9)
    rows = [(0, 0, x, 2 * x) for x in far]
    assert_same(values(Correlation("x", "y"), rows, DOUBLE, DOUBLE, groups=1), [1.0], 1e-12)


numbers = st.none() | st.integers(-1000, 1000).map(float)


MANY = [(0, 0, x, y) for x, y in [(1.0, 2.0), (2.0, -5.0), (7.0, 1.0), (10.0, 3.0), (3.0, 0.0), (4.0, 11.0)]]
"""Rows of one group, whose halves differ in all moments."""


@example(MANY, 3)
@given(rows_of(numbers, numbers), st.integers(0, 30))
def test_moments_are_those_of_exact_arithmetic(rows, cut):
    for accumulation in ALL:
        of_one = len(accumulation.inputs) == 1
        had = [row[:3] for row in rows] if of_one else rows
        expected = [
            value_of(
                accumulation,
                [Row(0, time, {"x": x, "y": y}, before_end=True) for time, of, x, y in rows if of == group],
            )
            for group in range(GROUPS)
        ]
        types = [DOUBLE] * (1 if of_one else 2)
        assert_same(values(accumulation, had, *types), expected, 1e-6)
        assert_laws(accumulation, had, types, cut, 1e-6)


def test_the_line_is_numpys():
    x, y = np.random.default_rng(1).normal(size=(2, 50))
    (line,) = values(
        LINE, [(0, 0, *pair) for pair in zip(x.tolist(), y.tolist(), strict=True)], DOUBLE, DOUBLE, groups=1
    )
    assert_same([line["slope"], line["intercept"]], np.polyfit(x, y, 1).tolist(), 1e-9)
    assert_same(line["r2"], float(np.corrcoef(x, y)[0, 1] ** 2), 1e-9)
