"""The laws of accumulations/base/accumulation.py, on columns, for whatever the strategies draw; users' own are in it.

What each family does with nulls, floats and slices is in tests/accumulations.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import Accumulation
from beamish.testing import laws
from beamish.testing.laws.accumulations import WINDOWS, OnColumns
from tests.own.accumulations import Balance
from tests.strategies import scripts
from tests.strategies.accumulations import accumulations

COLUMNS = {
    "score": (pa.int64(), scripts.scores),
    "ratio": (pa.float64(), scripts.plain_ratios),
    "name": (pa.string(), scripts.names),
    "cost": (pa.decimal128(10, 2), scripts.costs),
    "flag": (pa.bool_(), scripts.flags),
}
ROW = (
    pa.struct([(name, type_) for name, (type_, _) in COLUMNS.items()]),
    st.fixed_dictionaries({name: values for name, (_, values) in COLUMNS.items()}),
)
TOLERANCE = 1e-6
Drawn = tuple[Any, ...]
"""A row: event time in seconds, number of its window, values."""


def rows_of(*values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Drawn]]:
    return st.lists(st.tuples(st.integers(-3, 3), st.integers(0, WINDOWS - 1), *values), max_size=8)


@st.composite
def cases(draw: st.DrawFn, parts: int) -> tuple[Any, ...]:
    """An accumulation of columns of a drawn row, or of whole rows, and rows."""
    accumulation: Accumulation = draw(accumulations)
    whole = accumulation.inputs is None
    columns = [ROW] if whole else [COLUMNS[name] for name in accumulation.inputs or ()]
    rows = rows_of(*(values for _, values in columns))
    return OnColumns(accumulation, [type_ for type_, _ in columns]), *(draw(rows) for _ in range(parts))


@given(cases(3))
def test_merge_is_associative_and_commutative(case):
    on, a, b, _ = case
    laws.merge_is_associative(*case, TOLERANCE)
    laws.merge_is_commutative(on, a, b, TOLERANCE)


@given(cases(1))
def test_merge_has_create_as_identity(case):
    laws.new_accumulator_is_identity(*case)


@given(cases(2))
def test_add_a_v_equals_merge_a_add_create_v(case):
    laws.merge_agrees_with_add(*case, TOLERANCE)


@given(st.lists(scripts.scores), st.lists(scripts.scores), st.lists(scripts.scores))
def test_retract_add_a_v_v_equals_a(before, removed, after):
    """The built-in ones on columns: tests/accumulations/test_retractable.py."""
    laws.retract_undoes_add(Balance("score"), before, removed, after)
