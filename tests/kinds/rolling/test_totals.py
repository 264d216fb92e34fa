"""Totals are exact: no order and no subtraction changes them, and those of doubles are rounded once."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.errors import NumericOverflowError
from beamish.kernels.state_fields import Field
from beamish.kinds.rolling.totals import FieldTotals

DOUBLES = FieldTotals(Field(pa.float64(), "sum", None, "v"))
LONGS = FieldTotals(Field(pa.int64(), "sum", None, "v"))
DECIMALS = FieldTotals(Field(pa.decimal128(20, 2), "sum", None, "v"))
sizes = st.floats(2.0**-43, 2.0**61)
fitting = st.one_of(st.sampled_from([0.0, -0.0, 0.1, 12.34, 1e16, 2.0**61]), sizes, sizes.map(lambda size: -size))


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1))
def test_carries_change_no_total(values):
    lifted = LONGS.lift(pa.array(values, pa.int64()))
    for i in range(len(values)):
        lifted[i : i + 1] = LONGS.carried(lifted[i : i + 1])
    found = LONGS.carried(lifted.sum(axis=0, keepdims=True))
    assert (found[0, :1] >= 0).all()
    assert (found[0, :1] < 2**32).all()
    assert found[0, 0] + (int(found[0, 1]) << 32) == sum(values)


def total(of, values, less=()):
    lifted = of.lift(pa.array(values, of.field.type)).sum(axis=0, keepdims=True)
    gone = of.lift(pa.array(less, of.field.type)).sum(axis=0, keepdims=True)
    return of.read(lifted - gone)[0].as_py()


@given(st.lists(fitting, min_size=1, max_size=12), st.data())
def test_a_total_of_doubles_is_the_exact_sum_rounded_once(values, data):
    gone = data.draw(st.integers(0, len(values) - 1))
    assert total(DOUBLES, values) == math.fsum(values)
    assert total(DOUBLES, values, values[:gone]) == math.fsum(values[gone:])


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5))
def test_a_total_of_longs_is_their_sum_or_is_refused(values):
    if -(2**63) <= sum(values) < 2**63:
        assert total(LONGS, values) == sum(values)
    else:
        with pytest.raises(NumericOverflowError, match="the sum of column 'v' does not fit bigint"):
            total(LONGS, values)


@given(st.lists(st.decimals(-(10**17), 10**17, places=2), min_size=1, max_size=9))
def test_a_total_of_decimals_is_their_sum(values):
    assert total(DECIMALS, values) == sum(values, Decimal(0))


def test_a_total_of_no_values_is_null():
    for of in (DOUBLES, LONGS, DECIMALS):
        assert total(of, [None, None]) is None


def test_values_that_do_not_fit_are_counted():
    lifted = DOUBLES.lift(pa.array([1.0, math.inf, math.nan, 1e300, 2.0**-60, 0.0]))
    assert DOUBLES.unfit(lifted).tolist() == [False, True, True, True, True, False]
    assert not DOUBLES.unfit(np.cumsum(lifted, axis=0) - np.cumsum(lifted, axis=0)).any()
