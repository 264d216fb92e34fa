import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import Max, Min
from beamish.errors import ColumnError
from tests.accumulations.laws import FEW, GROUPS, assert_laws, assert_same, rows_of, value, values

NAN = math.nan
KINDS = {
    "bool": (pa.bool_(), st.booleans()),
    "int32": (pa.int32(), st.integers(-5, 5)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float32": (pa.float32(), st.floats(width=32)),
    "float64": (pa.float64(), st.floats()),
    "string": (pa.string(), st.text(max_size=3)),
    "binary": (pa.binary(), st.binary(max_size=3)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "short decimal": (pa.decimal128(10, 2), st.decimals(-9999, 9999, places=2)),
    "long decimal": (pa.decimal128(38, 2), st.decimals(-(10**30), 10**30, places=2)),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.builds(lambda a, b: {"a": a, "b": b}, st.none() | st.integers(0, 2), st.none() | st.text("ab", max_size=2)),
    ),
    "array": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(0, 2), max_size=3)),
}


def order(value):
    """Spark's order as a Python sort key."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, dict):
        return (1, [order(item) for item in value.values()])
    if isinstance(value, list):
        return (1, [order(item) for item in value])
    return (1, value)


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
