"""The type of a column from Python values: every pair of types keeps its values, or is refused."""

import itertools
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from beamish.kernels.python_columns import UnfitValueError, python_column
from tests.rubbish.python_values import FAMILIES, NULLS, REFUSED, TOGETHER

WRAPS = {
    "plain": (lambda value: value, lambda column: column.to_pylist(), ""),
    "in a struct": (lambda value: {"f": value}, lambda column: column.field(0).to_pylist(), "['f']"),
    "in a list": (lambda value: [value], lambda column: [row[0] for row in column.to_pylist()], "[0]"),
    "in a struct in a list": (
        lambda value: [{"g": None}, {"g": value}],
        lambda column: [row[1]["g"] for row in column.to_pylist()],
        "[1]['g']",
    ),
    "in a list in a struct": (
        lambda value: {"x": 1, "f": [None, value]},
        lambda column: [row["f"][1] for row in column.to_pylist()],
        "['f'][1]",
    ),
}


def same(one, other):
    """Whether two values are, with their types and the sign of zero."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_type_keeps_its_values(wrap):
    inside, outside, _ = WRAPS[wrap]
    for family in FAMILIES.values():
        column = python_column([inside(value) for value, _ in family.pairs])
        assert all(map(same, outside(column), [want for _, want in family.pairs]))


@pytest.mark.parametrize("wrap", WRAPS)
def test_two_types_keep_their_values_or_are_refused(wrap):
    inside, outside, path = WRAPS[wrap]
    for first, second in itertools.permutations(FAMILIES, 2):
        for (x, want_x), (y, want_y) in itertools.product(FAMILIES[first].pairs[:2], FAMILIES[second].pairs[:2]):
            values = [inside(x), inside(y)]
            if frozenset({first, second}) in TOGETHER:
                assert outside(python_column(values)) == [want_x, want_y]
                continue
            with pytest.raises(UnfitValueError) as refused:
                python_column(values)
            assert [(place.row, place.path) for place in refused.value.places] == [(0, path), (1, path)]
            assert f"values of different types, {first} and {second}" in refused.value.said("row {}".format)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_type_has_one_column_type_beside_nulls(name):
    family = FAMILIES[name]
    column = python_column([*NULLS, *(value for value, _ in family.pairs)])
    assert column.type == family.type
    assert column.null_count == len(NULLS)
    assert python_column(NULLS).type == pa.null()


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_value_is_named_with_its_place(name):
    make, reason = REFUSED[name]
    for inside, _, path in WRAPS.values():
        with pytest.raises(UnfitValueError) as refused:
            python_column([inside(None), inside(make())])
        (place,) = refused.value.places
        assert place.row == 1
        assert place.path.startswith(path)
        assert reason in refused.value.said("row {}".format)


@pytest.mark.parametrize("value", [2**53 + 1, 2**63 - 1, 10**400])
def test_an_int_that_no_float_equals_is_refused_among_floats(value):
    with pytest.raises(UnfitValueError, match="no float equals"):
        python_column([1.5, value])
    assert python_column([1.5, 2**53, 2**60]).to_pylist() == [1.5, 2**53, 2**60]


def test_a_decimal_column_has_the_digits_that_its_values_need():
    assert python_column([Decimal("1.50"), 1000]).type == pa.decimal128(6, 2)
    assert python_column([Decimal("0.00")]).type == pa.decimal128(2, 2)
    assert python_column([Decimal(0)]).type == pa.decimal128(1, 0)
    with pytest.raises(UnfitValueError, match="38 digits before the point and 1 after it"):
        python_column([Decimal("9" * 38), Decimal("0.1")])


def test_a_list_that_is_null_differs_from_an_empty_one():
    assert python_column([None, [], [[]], [None]]).to_pylist() == [None, [], [[]], [None]]
    assert python_column([{}, None]).to_pylist() == [{}, None]
