import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import Count
from tests.accumulations.laws import GROUPS, assert_laws, columns_of, rows_of, values

ROWS = rows_of(st.none() | st.integers())


def test_count_counts_all_rows_nulls_too():
    rows = [(0, 1, None), (0, 1, 5), (0, 3, 7)]
    _, times, groups = columns_of(rows)
    assert Count().reduce([], times, groups)[0].to_pylist() == [0, 2, 0, 1]


def test_count_of_a_column_leaves_out_nulls():
    assert values(Count("x"), [(0, 1, None), (0, 1, 5), (0, 3, None)], pa.int64()) == [0, 1, 0, 0]


def test_count_of_a_column_of_only_nulls_is_zero():
    assert values(Count("x"), [(0, 0, None)], pa.null()) == [0, 0, 0, 0]


@given(ROWS, st.integers(0, 30))
def test_count_is_that_of_the_scalar_reference(rows, cut):
    rows = [(time, group, None if value is None else value % 100) for time, group, value in rows]
    expected = [sum(1 for row in rows if row[1] == group and row[2] is not None) for group in range(GROUPS)]
    assert values(Count("x"), rows, pa.int64()) == expected
    assert_laws(Count("x"), rows, [pa.int64()], cut)
    assert_laws(Count(), [row[:2] for row in rows], [], cut)
