"""Rows in order of several keys."""

import numpy as np

from beamish.kernels.order import ranks, sort_order

WIDE = 2**62


def test_ranks_are_dense_from_the_least():
    keys = [np.array([5, 3, 9, 3, 3]), np.array([0, 2, 1, 1, 2])]
    assert ranks(keys).tolist() == [2, 1, 3, 0, 1]
    assert ranks([np.array([0, WIDE, -WIDE, 0]), np.array([WIDE, 0, 0, -WIDE])]).tolist() == [2, 3, 0, 1]


def test_equal_rows_stay_in_place():
    assert sort_order([np.array([1, 0, 1, 0]), np.array([7, 7, 7, 7])]).tolist() == [1, 3, 0, 2]
    assert sort_order([np.array([1, 1, 2])]).tolist() == [0, 1, 2]
    assert sort_order([np.array([], np.int64), np.array([], np.int64)]).tolist() == []
