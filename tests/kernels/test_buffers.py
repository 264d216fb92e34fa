"""Columns of Arrow read as numbers, wherever they begin."""

import numpy as np
import pyarrow as pa
import pytest

from beamish.kernels.buffers import limbs, numbers, offsets, valid


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, 2, 3], pa.int16()).slice(1), [2, 3]),
        (pa.array([1.5, -2.0], pa.float32()), [1.5, -2.0]),
        (pa.array([250, 1], pa.uint8()), [250, 1]),
        (pa.array([True, False, True, True] * 5).slice(9, 4), [0, 1, 1, 1]),
        (pa.array([1, 2]).slice(2), []),
        (pa.array([], pa.int64()), []),
        (pa.array([], pa.bool_()), []),
    ],
)
def test_numbers_are_the_values_of_a_slice(column, expected):
    assert numbers(column).tolist() == expected


def test_limbs_and_offsets_are_those_of_a_slice():
    decimals = pa.array([1, -1, 2**64 + 5], pa.decimal128(38, 0))
    high, low = limbs(decimals.slice(1))
    assert (high.tolist(), low.tolist()) == ([-1, 1], [2**64 - 1, 5])
    assert [part.tolist() for part in limbs(decimals.slice(3))] == [[], []]
    assert offsets(pa.array(["a", "bcd", "", "e"]).slice(1)).tolist() == [1, 4, 4, 5]
    assert offsets(pa.array([], pa.string())).tolist() == [0]


def test_valid_marks_rows_that_are_not_null():
    assert valid(pa.array([1, 2])) is None
    assert valid(pa.array([None, 1, None, 2] * 6).slice(7, 4)).tolist() == [True, False, True, False]
    assert valid(pa.nulls(2)).tolist() == [False, False]
    assert np.array_equal(valid(pa.array([None, 3]).slice(0, 1)), [False])
