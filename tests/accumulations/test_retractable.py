import operator
from decimal import Decimal
from functools import partial

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish import accumulations as a
from beamish.accumulations.base.retractable import Invertible, Multiset, Retracting, retractable
from beamish.errors import NumericOverflowError
from beamish.kernels.groups import Groups
from tests.accumulations.laws import FEW, GROUPS, assert_same, values
from tests.accumulations.stored import stored

LONG, STRING, DOUBLE, COST = pa.int64(), pa.string(), pa.float64(), pa.decimal128(10, 2)
FLAG, LONGS = pa.bool_(), pa.list_(pa.int64())
VALUES = {
    LONG: st.none() | st.integers(-3, 3),
    FLAG: st.none() | st.booleans(),
    LONGS: st.none() | st.lists(st.none() | st.integers(-3, 3), max_size=3),
    STRING: st.none() | st.sampled_from(["", "a", "b", "é"]),
    DOUBLE: st.none() | st.sampled_from([0.0, 0.25, -1.5, float("nan"), float("inf")]),
    COST: st.none() | st.sampled_from([Decimal("0.00"), Decimal("1.25"), Decimal("-3.10")]),
}


@attrs.frozen
class Balance(a.Accumulation):
    """A user's accumulation that can take a value back."""

    column: str
    result_type = "bigint"

    def create(self):
        return 0

    def add(self, accumulator, value):
        return accumulator + (value or 0)

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator

    def retract(self, accumulator, value):
        return accumulator - (value or 0)


CASES = [
    (a.Count(), ()),
    (a.Count("x"), (STRING,)),
    (a.Sum("x"), (LONG,)),
    (a.Sum("x"), (COST,)),
    (a.Sum("x"), (DOUBLE,)),
    (a.Mean("x"), (LONG,)),
    (a.Mean("x"), (COST,)),
    (a.Mean("x"), (DOUBLE,)),
    (a.Min("x"), (LONG,)),
    (a.Min("x"), (STRING,)),
    (a.Max("x"), (DOUBLE,)),
    (a.Max("x"), (COST,)),
    (a.MinBy("x", by="y"), (LONG, STRING)),
    (a.MaxBy("x", by="y"), (STRING, DOUBLE)),
    (a.Variance("x"), (LONG,)),
    (a.StdDev("x"), (LONG,)),
    (a.First("x"), (LONG,)),
    (a.Last("x", ignore_nulls=True), (STRING,)),
    (a.Collect("x"), (LONG,)),
    (a.Collect("x", sorted_by="y"), (LONG, STRING)),
    (a.Collect("x", sorted_by="y", descending=True), (LONG, STRING)),
    (a.CollectSet("x"), (STRING,)),
    (a.CountDistinct("x", "y"), (LONG, STRING)),
    (a.ApproxCountDistinct("x"), (LONG,)),
    (a.TopN(2, "x"), (LONG,)),
    (a.BottomN(2, "x"), (STRING,)),
    (a.TopNByKey(2, key="x", value="y"), (STRING, LONG)),
    (a.BottomNByKey(2, key="x", value="y", with_ties=True), (STRING, LONG)),
    (a.BitXor("x"), (LONG,)),
    (a.CountIf("x"), (FLAG,)),
    (a.BoolAnd("x"), (FLAG,)),
    (a.BoolOr("x"), (FLAG,)),
    (a.Histogram("x"), (STRING,)),
    (a.Kurtosis("x"), (LONG,)),
    (a.LinearRegression("x", "y"), (LONG, LONG)),
    (a.SumList("x"), (LONGS,)),
    (a.Quantiles("x", (0.25, 0.5)), (LONG,)),
    (a.Median("x"), (DOUBLE,)),
    (a.Reduce(operator.add, "x"), (LONG,)),
    (a.Fold(0, lambda total, x: total + (x or 0), column="x", merge=operator.add), (LONG,)),
    (Balance("x"), (LONG,)),
]
IDS = [f"{case!r} of {', '.join(map(str, types))}".split(" at 0x")[0] for case, types in CASES]


def signed(rows, sign, types):
    columns = [pa.array([row[2 + i] for row in rows], type_) for i, type_ in enumerate(types)]
    signs = pa.array(np.full(len(rows), sign, dtype=np.int8))
    times, group = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
    return [signs, *columns], times, Groups(group, GROUPS)


def joined(first, second):
    columns = [pa.concat_arrays(pair) for pair in zip(first[0], second[0], strict=True)]
    return columns, np.concatenate([first[1], second[1]]), first[2].followed_by(second[2])


def drawn(data, types):
    """Rows, the retracted ones among them, and the remaining ones."""
    row = st.tuples(st.integers(-3, 3), st.integers(0, GROUPS - 1), *(VALUES[type_] for type_ in types))
    rows = data.draw(st.lists(row, max_size=12))
    taken = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    return (
        rows,
        [row for row, gone in zip(rows, taken, strict=True) if gone],
        [row for row, gone in zip(rows, taken, strict=True) if not gone],
    )


@pytest.mark.of_law("law-retract")
@pytest.mark.parametrize(("accumulation", "types"), CASES, ids=IDS)
@given(data=st.data())
@FEW
def test_rows_less_those_removed_are_the_rest(accumulation, types, data):
    rows, taken, left = drawn(data, types)
    over = retractable(accumulation, types)
    expected = values(accumulation, left, *types)
    gives = over.value_type(types)
    floats = 1e-9 if gives == DOUBLE or pa.types.is_struct(gives) else 0.0
    told = partial(over.extract_columns, types=types)
    in_, out = signed(rows, 1, types), signed(taken, -1, types)

    added = stored(over.reduce(*in_))
    assert [column.type for column in added] == [field.type for field in over.fields(types)]
    later = stored(over.add_rows(added, *out))
    assert told(later).type == accumulation.value_type(types)
    assert_same(told(later).to_pylist(), expected, floats)

    at_once = over.reduce(*joined(in_, out))
    assert_same(told(at_once).to_pylist(), expected, floats)

    again = over.add_rows(later, *signed(taken, 1, types))
    assert_same(told(again).to_pylist(), values(accumulation, rows, *types), floats)


@pytest.mark.of_law("law-retract")
@pytest.mark.parametrize(("accumulation", "types"), CASES, ids=IDS)
def test_all_rows_removed_are_no_rows(accumulation, types):
    rows = [
        (
            1,
            0,
            *(
                min((v for v in (1, "a", 0.25, Decimal("1.25"), True, [1]) if accepts(type_, v)), key=str)
                for type_ in types
            ),
        )
    ]
    over = retractable(accumulation, types)
    state = over.add_rows(over.reduce(*signed(rows, 1, types)), *signed(rows, -1, types))
    assert over.extract_columns(state, types).to_pylist() == values(accumulation, [], *types)


def accepts(type_, value):
    try:
        pa.array([value], type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True


@pytest.mark.parametrize(
    ("accumulation", "types", "how"),
    [
        (a.Count(), (), Invertible),
        (a.Sum("x"), (LONG,), Invertible),
        (a.Mean("x"), (COST,), Invertible),
        (a.Sum("x"), (DOUBLE,), Multiset),  # adding and taking away a float need not undo each other
        (a.Max("x"), (LONG,), Multiset),
        (Balance("x"), (LONG,), Retracting),
    ],
)
def test_exact_accumulations_subtract_and_others_store_rows(accumulation, types, how):
    assert type(retractable(accumulation, types)) is how


def test_a_retractable_sum_that_overflows_names_its_column():
    over = retractable(a.Sum("x"), (LONG,))
    with pytest.raises(NumericOverflowError, match="column 'x' does not fit bigint"):
        over.reduce(
            [pa.array([1, 1], pa.int8()), pa.array([2**62, 2**62])],
            np.zeros(2, np.int64),
            Groups(np.zeros(2, np.int64), 1),
        )
