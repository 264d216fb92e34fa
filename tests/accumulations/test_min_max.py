import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import Max, Min
from beamish.errors import ColumnError
from tests.accumulations.kinds import KINDS, order
from tests.accumulations.laws import FEW, GROUPS, assert_laws, assert_same, rows_of, value, values

NAN = math.nan


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(data=st.data(), cut=st.integers(0, 30))
def test_min_and_max_follow_sparks_order(kind, data, cut):
    type_, strategy = KINDS[kind]
    rows = data.draw(rows_of(st.none() | strategy))
    for accumulation, choose in ((Min("x"), min), (Max("x"), max)):
        expected = [
            choose((row[2] for row in rows if row[1] == group and row[2] is not None), key=order, default=None)
            for group in range(GROUPS)
        ]
        assert_same(values(accumulation, rows, type_), pa.array(expected, type_).to_pylist())
        assert_laws(accumulation, rows, [type_], cut)


def test_nan_is_the_greatest_value():
    assert_same(value(Max("x"), [NAN, math.inf, None], pa.float64()), NAN)
    assert value(Min("x"), [NAN, math.inf, None], pa.float64()) == math.inf
    assert_same(value(Min("x"), [NAN, NAN], pa.float64()), NAN)


def test_strings_are_compared_by_bytes():
    assert value(Max("x"), ["Z", "a", "é"], pa.string()) == "é"
    assert value(Min("x"), ["Z", "a", "é"], pa.string()) == "Z"


def test_values_keep_their_type():
    assert value(Max("x"), [date(2024, 1, 1), date(2023, 1, 1)], pa.date32()) == date(2024, 1, 1)
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    assert value(Min("x"), [moment], pa.timestamp("us", "UTC")) == moment
    assert value(Min("x"), [Decimal("1.50")], pa.decimal128(5, 2)) == Decimal("1.50")
    assert value(Max("x"), ["a", "b"], pa.dictionary(pa.int32(), pa.string())) == "b"


def test_only_nulls_give_null():
    assert value(Max("x"), [None, None], pa.null()) is None
    assert value(Min("x"), [None], pa.string()) is None


def test_maps_are_rejected_with_the_fix():
    with pytest.raises(ColumnError, match="map_entries"):
        Max("x").check_types("most", [pa.map_(pa.string(), pa.int64())])
