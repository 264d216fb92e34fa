import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import First, Last
from beamish.errors import OptionError
from tests.accumulations.kinds import KINDS, order
from tests.accumulations.laws import FEW, GROUPS, assert_laws, assert_same, rows_of, values


def test_first_and_last_use_event_time():
    rows = [(5, 0, "late"), (1, 0, "early"), (3, 0, "middle")]
    assert values(First("x"), rows, pa.string(), groups=2) == ["early", None]
    assert values(Last("x"), rows, pa.string(), groups=2) == ["late", None]


def test_ties_are_broken_by_value_null_first():
    rows = [(1, 0, "b"), (1, 0, None), (1, 0, "a")]
    assert values(First("x"), rows, pa.string(), groups=1) == [None]
    assert values(First("x", ignore_nulls=True), rows, pa.string(), groups=1) == ["a"]
    assert values(Last("x"), rows, pa.string(), groups=1) == ["b"]


def test_a_null_of_the_latest_row_is_the_last_value():
    rows = [(1, 0, "a"), (2, 0, None)]
    assert values(Last("x"), rows, pa.string(), groups=1) == [None]
    assert values(Last("x", ignore_nulls=True), rows, pa.string(), groups=1) == ["a"]


def test_ignore_nulls_is_a_flag():
    with pytest.raises(OptionError, match="must be True or False"):
        First("x", ignore_nulls="yes")


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(data=st.data(), cut=st.integers(0, 30), ignore_nulls=st.booleans())
def test_first_and_last_are_those_of_the_scalar_reference(kind, data, cut, ignore_nulls):
    type_, strategy = KINDS[kind]
    rows = data.draw(rows_of(st.none() | strategy))
    for accumulation, choose in ((First("x", ignore_nulls), min), (Last("x", ignore_nulls), max)):
        expected = []
        for group in range(GROUPS):
            there = [row for row in rows if row[1] == group and not (ignore_nulls and row[2] is None)]
            expected.append(choose(there, key=lambda row: (row[0], order(row[2])))[2] if there else None)
        assert_same(values(accumulation, rows, type_), pa.array(expected, type_).to_pylist())
        assert_laws(accumulation, rows, [type_], cut)
