from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import Mean, Sum
from beamish.errors import ColumnError, NumericOverflowError
from beamish.kernels.groups import Groups
from tests.accumulations.laws import FEW, GROUPS, assert_laws, assert_same, rows_of, value, values

LARGEST = 2**63 - 1
INTS = rows_of(st.none() | st.integers(-(2**58), 2**58))
FLOATS = rows_of(st.none() | st.floats(-1e6, 1e6))
CUT = st.integers(0, 30)


def decimals(digits):
    return st.none() | st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda whole: Decimal(f"{whole}e-2"))


def present(rows, group):
    return [row[2] for row in rows if row[1] == group and row[2] is not None]


def test_sum_of_nothing_and_of_nulls_is_null():
    assert values(Sum("x"), [(0, 1, None)], pa.int64()) == [None] * GROUPS
    assert values(Sum("x"), [(0, 1, None)], pa.null()) == [None] * GROUPS


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_sum_of_integers_is_bigint(type_):
    assert value(Sum("x"), [100, 27, None], type_) == 127
    assert Sum("x").value_type([type_]) == pa.int64()


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_sum_of_floats_is_double(type_):
    assert value(Sum("x"), [0.5, 0.25, None], type_) == 0.75
    assert Sum("x").value_type([type_]) == pa.float64()


@pytest.mark.parametrize(("given_type", "wider"), [((5, 2), (15, 2)), ((28, 0), (38, 0)), ((38, 10), (38, 10))])
def test_sum_of_decimals_has_ten_more_digits(given_type, wider):
    assert Sum("x").value_type([pa.decimal128(*given_type)]) == pa.decimal128(*wider)


def test_sum_beyond_bigint_is_raised_with_the_column():
    with pytest.raises(NumericOverflowError, match="'clicks' does not fit bigint") as raised:
        value(Sum("clicks"), [LARGEST, 1], pa.int64())
    assert raised.value.group == 0
    with pytest.raises(NumericOverflowError, match="clicks"):
        value(Sum("clicks"), [-LARGEST, -2], pa.int64())


def test_sum_may_reach_the_ends_of_bigint():
    assert value(Sum("x"), [LARGEST - 1, 1], pa.int64()) == LARGEST
    assert value(Sum("x"), [-LARGEST, -1], pa.int64()) == -LARGEST - 1
    assert value(Sum("x"), [LARGEST, LARGEST, -LARGEST], pa.int64()) == LARGEST


def test_sum_overflow_of_merged_parts_is_raised():
    parts = pa.array([LARGEST, 1], pa.int64())
    with pytest.raises(NumericOverflowError):
        Sum("x").combine(Groups(np.array([0, 0]), 1), [parts])


def test_sum_beyond_38_digits_is_raised():
    nines = Decimal("9" * 38)
    with pytest.raises(NumericOverflowError, match=r"decimal\(38,0\)"):
        value(Sum("x"), [nines, 1], pa.decimal128(38, 0))
    with pytest.raises(NumericOverflowError):
        value(Sum("x"), [nines.copy_negate()] * 5, pa.decimal128(38, 0))
    assert value(Sum("x"), [nines, nines, nines.copy_negate()], pa.decimal128(38, 0)) == nines


def test_sum_of_text_is_refused_with_the_fix():
    with pytest.raises(ColumnError, match="column 'x' is string, and must be a number; cast it"):
        Sum("x").check_types("total", [pa.string()])
    with pytest.raises(ColumnError):
        Sum("x").check_types("total", [pa.bool_()])


@given(INTS, CUT)
def test_sum_of_integers_is_exact(rows, cut):
    assert values(Sum("x"), rows, pa.int64()) == [
        sum(present(rows, group)) if present(rows, group) else None for group in range(GROUPS)
    ]
    assert_laws(Sum("x"), rows, [pa.int64()], cut)


@given(FLOATS, CUT)
def test_sum_of_floats_is_that_of_any_order_to_rounding(rows, cut):
    expected = [sum(present(rows, group)) if present(rows, group) else None for group in range(GROUPS)]
    assert_same(values(Sum("x"), rows, pa.float64()), [None if x is None else float(x) for x in expected], 1e-9)
    assert_laws(Sum("x"), rows, [pa.float64()], cut, 1e-9)


@pytest.mark.parametrize("digits", [5, 18, 30, 34])
@FEW
@given(data=st.data(), cut=CUT)
def test_sum_and_mean_of_decimals_are_exact(digits, data, cut):
    rows = data.draw(rows_of(decimals(digits)))
    type_ = pa.decimal128(digits, 2)
    for group, (total, mean) in enumerate(
        zip(values(Sum("x"), rows, type_), values(Mean("x"), rows, type_), strict=True)
    ):
        with localcontext(prec=100):
            there = present(rows, group)
            if not there:
                assert (total, mean) == (None, None)
                continue
            assert total == sum(there)
            scale = Decimal(1).scaleb(-min(2 + 4, 38))
            assert mean == (sum(there) / len(there)).quantize(scale, ROUND_HALF_UP)
    assert_laws(Sum("x"), rows, [type_], cut)
    assert_laws(Mean("x"), rows, [type_], cut)


def test_mean_of_decimals_is_rounded_half_up():
    one = Decimal("0.0001")
    assert value(Mean("x"), [one] + [Decimal(0)] * 1999, pa.decimal128(4, 4)) == Decimal("0.00000005")
    assert value(Mean("x"), [one, one] + [Decimal(0)] * 15, pa.decimal128(4, 4)) == Decimal("0.00001176")
    half = [Decimal("0.0001")] + [Decimal(0)] * 19999
    assert value(Mean("x"), half, pa.decimal128(4, 4)) == Decimal("0.00000001")
    assert value(Mean("x"), [-x for x in half], pa.decimal128(4, 4)) == Decimal("-0.00000001")


def test_mean_of_decimals_that_does_not_fit_is_raised():
    with pytest.raises(NumericOverflowError, match="mean"):
        value(Mean("x"), [Decimal(10) ** 37], pa.decimal128(38, 0))


def test_mean_of_integers_is_double():
    assert value(Mean("x"), [1, 2, None], pa.int32()) == 1.5


@given(FLOATS, CUT)
def test_mean_is_sum_over_count(rows, cut):
    expected = [
        sum(present(rows, group)) / len(present(rows, group)) if present(rows, group) else None
        for group in range(GROUPS)
    ]
    assert_same(values(Mean("x"), rows, pa.float64()), expected, 1e-9)
    assert_laws(Mean("x"), rows, [pa.float64()], cut, 1e-9)
