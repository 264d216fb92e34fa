import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import MaxBy, MinBy
from beamish.errors import ColumnError, OptionError
from tests.accumulations.kinds import KINDS, order
from tests.accumulations.laws import FEW, GROUPS, assert_laws, assert_same, rows_of, values

LONG, STRING = pa.int64(), pa.string()


def test_min_by_and_max_by_give_the_value_beside_the_extreme():
    rows = [(0, 0, "ann", 3), (0, 0, "bob", 1), (0, 0, "cid", None), (0, 0, "dan", 9)]
    assert values(MinBy("who", by="x"), rows, STRING, LONG, groups=2) == ["bob", None]
    assert values(MaxBy("who", by="x"), rows, STRING, LONG, groups=2) == ["dan", None]


def test_min_by_and_max_by_break_ties_by_value():
    rows = [(0, 0, "b", 1), (0, 0, None, 1), (0, 0, "a", 1)]
    assert values(MinBy("who", by="x"), rows, STRING, LONG, groups=1) == [None]
    assert values(MaxBy("who", by="x"), rows, STRING, LONG, groups=1) == ["b"]


def test_nan_is_the_greatest_and_a_column_of_nulls_has_no_extreme():
    rows = [(0, 0, "a", math.inf), (0, 0, "b", math.nan)]
    assert values(MaxBy("who", by="x"), rows, STRING, pa.float64(), groups=1) == ["b"]
    assert values(MaxBy("who", by="x"), [(0, 0, "a", None)], STRING, pa.null(), groups=1) == [None]


def test_a_missing_or_unorderable_column_is_rejected():
    with pytest.raises(OptionError, match=r"MinBy\(by=3\)"):
        MinBy("who", by=3)
    with pytest.raises(ColumnError, match="map_entries"):
        MaxBy("who", by="x").check_types("best", [STRING, pa.map_(STRING, LONG)])


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(data=st.data(), cut=st.integers(0, 30))
def test_min_by_and_max_by_are_those_of_the_scalar_reference(kind, data, cut):
    type_, strategy = KINDS[kind]
    rows = data.draw(rows_of(st.none() | st.integers(0, 3), st.none() | strategy))
    for accumulation, choose in ((MinBy("x", by="y"), min), (MaxBy("x", by="y"), max)):
        expected = []
        for group in range(GROUPS):
            there = [row for row in rows if row[1] == group and row[3] is not None]
            expected.append(choose(there, key=lambda row: (order(row[3]), order(row[2])))[2] if there else None)
        assert_same(values(accumulation, rows, LONG, type_), expected)
        assert_laws(accumulation, rows, [LONG, type_], cut)
