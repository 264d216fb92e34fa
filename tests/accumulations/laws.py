"""Shared by the tests of accumulations: running one on rows, and the laws of the contract."""

import math
import pickle

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from beamish.kernels.groups import Groups
from tests.cost import cost

GROUPS = 4

FEW = cost(3)
"""For properties that are tried for each of many types."""


def columns_of(rows, *types, groups=GROUPS):
    """Rows (tuples: event time, group, value...) as (columns, event_time_us, groups)."""
    times = np.array([row[0] for row in rows], dtype=np.int64)
    group = np.array([row[1] for row in rows], dtype=np.int64)
    columns = [pa.array([row[2 + i] for row in rows], type_) for i, type_ in enumerate(types)]
    return columns, times, Groups(group, groups)


def values(accumulation, rows, *types, groups=GROUPS):
    """The results of the accumulation for rows, one per group."""
    state = accumulation.reduce(*columns_of(rows, *types, groups=groups))
    assert [column.type for column in state] == [field.type for field in accumulation.fields(types)]
    result = accumulation.extract_columns(state, types)
    assert result.type == accumulation.value_type(types)
    return result.to_pylist()


def value(accumulation, given, type_):
    """The result for the values of one column, with increasing event times."""
    return values(accumulation, [(i, 0, item) for i, item in enumerate(given)], type_, groups=1)[0]


def same(a, b, tolerance=0.0):
    """Equal, NaN to NaN, -0.0 to 0.0, floats to within a relative tolerance."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key], tolerance) for key in a)
    return type(a) is type(b) and a == b


def assert_same(a, b, tolerance=0.0):
    assert same(a, b, tolerance), f"{a!r} is not {b!r}"


def rows_of(*values, least=0):
    """A strategy: rows of (event time, group, value...), some times and groups alike, some groups without rows."""
    row = st.tuples(st.integers(-3, 3), st.integers(0, GROUPS - 1), *values)
    return st.lists(row, min_size=least, max_size=30)


def assert_laws(accumulation, rows, types, cut, tolerance=0.0):
    """Merging in any split, order and grouping, with the accumulator of no rows, from slices: all give the same."""
    columns, times, groups = columns_of(rows, *types)
    expected = values(accumulation, rows, *types)
    cut = min(cut, len(rows))

    def told(state):
        return accumulation.extract_columns(state, types).to_pylist()

    def part(start, end):
        parts = [column.slice(start, end - start) for column in columns]
        return accumulation.reduce(parts, times[start:end], groups[start:end])

    def merged(*states):
        numbers = Groups(np.tile(np.arange(GROUPS), len(states)), GROUPS)
        together = [pa.concat_arrays(fields) for fields in zip(*states, strict=True)]
        return accumulation.combine(numbers, together)

    first, rest, none = part(0, cut), part(cut, len(rows)), part(0, 0)
    assert_same(told(merged(first, rest)), expected, tolerance)
    assert_same(told(merged(rest, first)), expected, tolerance)
    assert_same(told(merged(merged(none, rest), first)), expected, tolerance)
    whole = part(0, len(rows))
    assert_same(told(merged(whole, none)), told(whole))
    assert_same(told(merged(none, whole)), told(whole))
    added = accumulation.add_rows(first, [column.slice(cut) for column in columns], times[cut:], groups[cut:])
    assert_same(told(added), expected, tolerance)
    assert_same(told(accumulation.combine(groups, accumulation.lift(columns, times))), expected, tolerance)
    backwards = [column.take(pa.array(range(len(rows) - 1, -1, -1), pa.int64())) for column in columns]
    assert_same(told(accumulation.reduce(backwards, times[::-1], groups[::-1])), expected, tolerance)
    # Slices of a longer state mean what they hold, and fields are made of the accumulator of no rows.
    padded = [pa.concat_arrays([field, field]).slice(GROUPS) for field in whole]
    assert_same(told(padded), told(whole))
    assert_same(told(accumulation.combine(Groups.each(GROUPS), padded)), told(whole))
    for field, column in zip(accumulation.fields(types), none, strict=True):
        assert_same(column.to_pylist(), pa.array([field.initial] * GROUPS, field.type).to_pylist())
    no_rows = [column.slice(0, 0) for column in columns]
    assert accumulation.reduce(no_rows, times[:0], Groups.each(0))[0].to_pylist() == []


def assert_is_a_value(accumulation, names):
    """Equal, hashable, picklable and printed by value; frozen."""
    again = eval(repr(accumulation), dict(names))  # the law is about eval
    assert again == accumulation
    assert hash(again) == hash(accumulation)
    assert pickle.loads(pickle.dumps(accumulation)) == accumulation
