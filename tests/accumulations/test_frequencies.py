import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import Entropy, Histogram, Mode, MostFrequent
from tests.accumulations.kinds import KINDS
from tests.accumulations.laws import FEW, GROUPS, assert_laws, assert_same, rows_of, value, values
from tests.twin.accumulations import Row, value_of


def test_frequencies_by_hand():
    colours = ["b", "a", None, "b", "c", "c"]
    counted = [{"value": "a", "count": 1}, {"value": "b", "count": 2}, {"value": "c", "count": 2}]
    assert value(Histogram("x"), colours, pa.string()) == counted
    assert value(MostFrequent(2, "x"), colours, pa.string()) == counted[1:]
    assert value(Mode("x"), colours, pa.string()) == "b"
    assert_same(value(Entropy("x"), colours, pa.string()), 1.521928094887362, 1e-12)


def test_zeros_of_both_signs_are_one_value():
    assert value(Histogram("x"), [-0.0, 0.0], pa.float64()) == [{"value": 0.0, "count": 2}]
    assert str(value(Mode("x"), [-0.0], pa.float64())) == "0.0"


def test_equal_values_have_no_entropy_and_nothing_is_null():
    assert value(Entropy("x"), [7, 7], pa.int64()) == 0.0
    assert [value(kind("x"), [None], pa.int64()) for kind in (Entropy, Mode, Histogram)] == [None, None, []]


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(data=st.data(), cut=st.integers(0, 30), n=st.integers(1, 4))
def test_frequencies_are_those_of_the_scalar_reference(kind, data, cut, n):
    type_, strategy = KINDS[kind]
    rows = data.draw(rows_of(st.none() | strategy))
    for accumulation in (Histogram("x"), MostFrequent(n, "x"), Mode("x"), Entropy("x")):
        expected = [
            value_of(accumulation, [Row(0, time, {"x": x}, before_end=True) for time, of, x in rows if of == group])
            for group in range(GROUPS)
        ]
        plain = pa.array(expected, accumulation.value_type([type_])).to_pylist()
        assert_same(values(accumulation, rows, type_), plain, 1e-9)
        assert_laws(accumulation, rows, [type_], cut, 1e-9)
