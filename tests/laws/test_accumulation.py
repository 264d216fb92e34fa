"""The laws of accumulations/base/accumulation.py, on columns, for whatever the strategies draw; users' own are in it.

What each family does with nulls, floats and slices is in tests/accumulations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from beamish.kernels.groups import Groups
from tests.agreement import close
from tests.own.accumulations import Balance
from tests.strategies import scripts
from tests.strategies.accumulations import accumulations
from tests.twin.order import normal

TYPES = {
    "score": pa.int64(),
    "ratio": pa.float64(),
    "name": pa.string(),
    "cost": pa.decimal128(10, 2),
    "flag": pa.bool_(),
}
GROUPS = 2
Drawn = tuple[int, int, dict[str, Any]]
"""A row: event time in seconds, group, values."""

rows = st.lists(
    st.tuples(
        st.integers(-3, 3),
        st.integers(0, GROUPS - 1),
        st.fixed_dictionaries(
            {
                "score": scripts.scores,
                "ratio": scripts.plain_ratios,
                "name": scripts.names,
                "cost": scripts.costs,
                "flag": scripts.flags,
            }
        ),
    ),
    max_size=8,
)


def columns_of(accumulation, drawn: list[Drawn]):
    """Its input columns, event times and groups."""
    table = pa.Table.from_pylist([values for _, _, values in drawn], schema=pa.schema(TYPES)).combine_chunks()
    if accumulation.inputs is None:
        columns = [pa.array([values for _, _, values in drawn], pa.struct(list(TYPES.items())))]
    else:
        columns = [pa.array(table[name].to_pylist(), TYPES[name]) for name in accumulation.inputs]
    times, groups = (np.array([row[i] for row in drawn], dtype=np.int64) for i in (0, 1))
    return columns, times * 1_000_000, Groups(groups, GROUPS)


def reduced(accumulation, drawn):
    return accumulation.reduce(*columns_of(accumulation, drawn))


def merge(accumulation, *states):
    """``merge`` on columns: group by group."""
    together = [pa.concat_arrays(fields) for fields in zip(*states, strict=True)]
    return accumulation.combine(Groups(np.tile(np.arange(GROUPS), len(states)), GROUPS), together)


def values(accumulation, state):
    types = [column.type for column in columns_of(accumulation, [])[0]]
    return [normal(value) for value in accumulation.extract_columns(state, types).to_pylist()]


@given(accumulations, st.tuples(rows, rows, rows))
def test_merge_is_associative_and_commutative(accumulation, three):
    a, b, c = (reduced(accumulation, drawn) for drawn in three)
    left = values(accumulation, merge(accumulation, merge(accumulation, a, b), c))
    assert close(left, values(accumulation, merge(accumulation, a, merge(accumulation, b, c))))
    assert close(left, values(accumulation, merge(accumulation, c, b, a)))


@given(accumulations, rows)
def test_merge_has_create_as_identity(accumulation, drawn):
    state, none = reduced(accumulation, drawn), reduced(accumulation, [])
    expected = values(accumulation, state)
    assert values(accumulation, merge(accumulation, none, state)) == expected
    assert values(accumulation, merge(accumulation, state, none)) == expected


@given(accumulations, rows, rows)
def test_add_a_v_equals_merge_a_add_create_v(accumulation, before, new):
    state = reduced(accumulation, before)
    added = accumulation.add_rows(state, *columns_of(accumulation, new))
    merged = merge(accumulation, state, reduced(accumulation, new))
    assert close(values(accumulation, added), values(accumulation, merged))


@given(st.lists(scripts.scores), scripts.scores)
def test_retract_add_a_v_v_equals_a(before, value):
    """The built-in ones on columns: tests/accumulations/test_retractable.py."""
    balance, accumulator = Balance("score"), Balance("score").create()
    for one in before:
        accumulator = balance.add(accumulator, one)
    assert balance.retract(balance.add(accumulator, value), value) == accumulator
