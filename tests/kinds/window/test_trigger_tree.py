"""Calls of triggers when windows merge."""

import numpy as np

from beamish.kinds.window.state.window_table import TriggerMerge

# Windows 0, 2 and 3 become window 5, window 1 becomes window 4; window 6 has no part.
MERGE = TriggerMerge(np.array([0, 1, 2, 3]), np.array([1, 0, 1, 1]), np.array([4, 5, 6]))


def test_any_and_all_are_over_the_parts_and_false_of_none():
    flags = np.array([True, True, False, True, False, False, False])
    assert MERGE.any(flags).tolist() == [True, True, False]
    assert MERGE.all(flags).tolist() == [True, False, False]


def test_sums_extremes_and_lists_are_over_the_parts():
    numbers = np.array([5, 7, 1, 3, 100, 100, 100])
    assert MERGE.sum(numbers).tolist() == [7, 9, 0]
    assert MERGE.least(numbers)[:2].tolist() == [7, 1]
    assert MERGE.greatest(numbers)[:2].tolist() == [7, 5]
    assert MERGE.lists(numbers) == [[7], [5, 1, 3], []]


def test_only_keeps_the_parts_of_some_results():
    some = MERGE.only(np.array([False, True, True]))
    assert some.into.tolist() == [5, 6]
    assert some.sum(np.array([5, 7, 1, 3, 0, 0, 0])).tolist() == [9, 0]
