"""Joins that give each pair once: however rows are merged, the same pairs are made and the same rows kept."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import FullOuterJoin
from beamish.accumulations.base.gathered import Side, reach
from beamish.accumulations.base.pairs_once import Keeps, PairsOnce
from beamish.kernels.groups import Groups

SIDES = tuple(Side(name, number, (f"{name}.x",), ("x",)) for number, name in enumerate("ab"))
ALL = Keeps(gives_alone=True)
JOIN = PairsOnce(FullOuterJoin("a", "b", once=True), SIDES, ALL, ALL)
APART = PairsOnce(FullOuterJoin("a", "b", once=True), SIDES, ALL, ALL, meets_us=(-2, 3))
rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), max_size=12)
"""Event times, and of which side."""


def accumulated(join, parts):
    """An accumulator of the rows of each part; a row's value is a number of its own."""
    flat = [(time, side, part) for part, of in enumerate(parts) for time, side in of]
    numbers = pa.array(range(len(flat)), pa.int64())
    which = np.array([side for _, side, _ in flat], dtype=np.int8)
    columns = [pa.array(which, pa.int8()), numbers, numbers]
    times = np.array([time for time, _, _ in flat], dtype=np.int64)
    groups = Groups(np.array([part for _, _, part in flat], dtype=np.int64), len(parts))
    return join.reduce(columns, times, groups)


def contents(state):
    """The contents of accumulators in which order does not matter."""
    return [[Counter(map(repr, items)) for items in lists] for lists in (column.to_pylist() for column in state)]


def take(state, at):
    return [column.take(pa.array(at, pa.int64())) for column in state]


def merged(join, state):
    return join.combine(Groups(np.zeros(len(state[0]), dtype=np.int64), 1), state)


@pytest.mark.parametrize("join", [JOIN, APART], ids=["all", "apart"])
@given(parts=st.lists(rows, min_size=1, max_size=6), data=st.data())
def test_merged_in_any_order_all_pairs_are_made_once(join, parts, data):
    state = accumulated(join, parts)
    whole = contents(accumulated(join, [[row for part in parts for row in part]]))
    assert contents(merged(join, state)) == whole
    order = data.draw(st.permutations(range(len(parts))))
    assert contents(merged(join, take(state, order))) == whole
    cut = data.draw(st.integers(0, len(parts)))
    halves = [merged(join, take(state, some)) for some in (order[:cut], order[cut:])]
    both = [pa.concat_arrays(pair) for pair in zip(*halves, strict=True)]
    assert contents(merged(join, both)) == whole


@given(rows=rows)
def test_the_pairs_are_those_of_two_loops(rows):
    for join, meets in ((JOIN, lambda _: True), (APART, lambda later: -2 <= later <= 3)):
        left, right = ([(i, time) for i, (time, side) in enumerate(rows) if side == own] for own in (0, 1))
        expected = Counter((i, j) for i, time in left for j, other in right if meets(other - time))
        (due,) = accumulated(join, [rows])[2].to_pylist()
        assert Counter((pair["a"]["x"], pair["b"]["x"]) for pair in due) == expected


@given(rows=rows)
def test_the_last_pane_has_pairs_and_unmatched_rows(rows):
    state = accumulated(JOIN, [rows])
    (due,) = JOIN.of_last_pane(state)[2].to_pylist()
    sides = {side for _, side in rows}
    alone = [pair for pair in due if pair["a"] is None or pair["b"] is None]
    assert len(alone) == (len(rows) if len(sides) == 1 else 0)
    assert [items.to_pylist() for items in JOIN.after_pane(state)][2] == [[]]


@given(
    least=st.sampled_from([0, -(2**61), 2**60]),
    factor=st.sampled_from([1, 2**55]),
    left=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 9)), max_size=9),
    right=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 9)), max_size=9).map(sorted),
)
def test_matches_are_found_for_distant_times_too(least, factor, left, right):
    of_left, times = (np.array([row[i] for row in left], dtype=np.int64) for i in (0, 1))
    of_right, others = (np.array([row[i] for row in right], dtype=np.int64) for i in (0, 1))
    since, until = least + (times - 2) * factor, least + (times + 1) * factor
    first, last = reach(of_left, since, until, of_right, least + others * factor)
    for row, begin, end in zip(left, first.tolist(), last.tolist(), strict=True):
        reached = [i for i, other in enumerate(right) if other[0] == row[0] and row[1] - 2 <= other[1] <= row[1] + 1]
        assert list(range(begin, end)) == reached
