"""Reductions over groups, compared with plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.kernels.groups import Groups

ENTRIES = st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3), st.booleans()), max_size=20)


def by_group(groups, values):
    return [
        [value for of, value in zip(groups.of, values, strict=True) if of == number] for number in range(groups.count)
    ]


@given(ENTRIES)
def test_reductions_are_those_of_the_entries_of_each_group(entries):
    groups = Groups(np.array([entry[0] for entry in entries], np.int64), 5)
    values = np.array([entry[1] for entry in entries], np.int64)
    flags = np.array([entry[2] for entry in entries], bool)
    parts, marks = by_group(groups, values.tolist()), by_group(groups, flags.tolist())
    places = by_group(groups, range(len(entries)))
    bounds = np.iinfo(np.int64)
    assert groups.sizes().tolist() == [len(part) for part in parts]
    assert groups.occupied().tolist() == [bool(part) for part in parts]
    assert groups.sum(values).tolist() == [sum(part) for part in parts]
    assert groups.least(values).tolist() == [min(part, default=bounds.max) for part in parts]
    assert groups.greatest(values).tolist() == [max(part, default=bounds.min) for part in parts]
    assert groups.any(flags).tolist() == [any(part) for part in marks]
    assert groups.all(flags).tolist() == [bool(part) and all(part) for part in marks]
    assert groups.first().tolist() == [min(part, default=-1) for part in places]
    least = [min(part, key=lambda place: (values[place], flags[place], place), default=-1) for part in places]
    assert groups.first([values, flags.astype(np.int64)]).tolist() == least


@given(ENTRIES)
def test_runs_and_positions_are_those_of_entries_in_order(entries):
    groups = Groups(np.sort(np.array([entry[0] for entry in entries], np.int64)), 5)
    places = by_group(groups, range(len(entries)))
    runs = [(number, part[0], part[-1] + 1) for number, part in enumerate(places) if part]
    assert list(groups.runs()) == runs
    assert groups.positions().tolist() == [i for part in places for i in range(len(part))]


def test_nan_is_the_greatest_value_of_a_group():
    groups = Groups(np.array([0, 0, 1, 2]), 4)
    values = np.array([math.nan, 1.0, math.nan, -math.inf])
    assert np.array_equal(groups.least(values), [1.0, math.nan, -math.inf, math.nan], equal_nan=True)
    assert np.array_equal(groups.greatest(values), [math.nan, math.nan, -math.inf, -math.inf], equal_nan=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32])
def test_results_keep_the_dtype_of_the_values(dtype):
    groups = Groups(np.array([1, 1]), 2)
    values = np.array([1, 2], dtype)
    for reduce in (groups.sum, groups.least, groups.greatest):
        assert reduce(values).dtype == dtype


def test_entries_are_chosen_repeated_and_followed_by_others():
    groups = Groups(np.array([2, 0, 2]), 3)
    assert len(groups) == 3
    assert groups[np.array([True, False, True])].of.tolist() == [2, 2]
    assert groups[1:].of.tolist() == [0, 2]
    assert groups.repeat(np.array([0, 2, 1])).of.tolist() == [0, 0, 2]
    both = Groups.each(3).followed_by(groups)
    assert (both.of.tolist(), both.count) == ([0, 1, 2, 2, 0, 2], 3)


def test_the_first_entry_is_that_of_the_least_keys_and_of_equal_ones_the_first():
    groups = Groups(np.array([2, 0, 2, 0, 2]), 3)
    assert groups.first([np.array([4, 1, 3, 1, 3])]).tolist() == [1, -1, 2]
    assert groups.first([np.array([4, 1, 3, 1, 3]), np.array([0, 9, 8, 2, 7])]).tolist() == [3, -1, 4]
    assert groups.first().tolist() == [1, -1, 0]
