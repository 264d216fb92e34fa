import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.accumulations import ApproxCountDistinct
from beamish.accumulations.approx_count_distinct import _sigma, _tau
from beamish.errors import OptionError
from beamish.kernels.codes import hash_values
from beamish.kernels.groups import Groups
from tests.accumulations.kinds import KINDS
from tests.accumulations.laws import FEW, GROUPS, assert_laws, rows_of, value, values

HASHES_OF_TEXT = [12035550249420947055, 896903180678302595, 6052018698324344972]
HASHES_OF_INTS = [16294208416658607535, 10451216379200822465, 16490336266968443936]


def test_few_values_are_counted_exactly():
    assert value(ApproxCountDistinct("x"), ["a", "b", "a", None], pa.string()) == 2
    assert value(ApproxCountDistinct("x"), [None], pa.null()) == 0
    assert value(ApproxCountDistinct("x"), [0.0, -0.0, math.nan, -math.nan], pa.float64()) == 2


@pytest.mark.parametrize("rsd", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("count", [100, 1_000, 100_000])
@pytest.mark.parametrize("text", [False, True])
def test_estimates_are_within_four_standard_deviations(rsd, count, text):
    column = pa.array(range(count), pa.int64())
    column = column.cast(pa.string()) if text else column
    accumulation = ApproxCountDistinct("x", rsd)
    state = accumulation.reduce([column], np.zeros(count, np.int64), Groups(np.zeros(count, np.int64), 1))
    estimate = accumulation.extract_columns(state, [column.type]).to_pylist()[0]
    assert abs(estimate - count) <= 4 * rsd * count


def test_errors_have_the_stated_standard_deviation():
    rsd, groups, each = 0.05, 300, 5_000
    column = pa.array(np.arange(groups * each))
    group = np.repeat(np.arange(groups), each)
    accumulation = ApproxCountDistinct("x", rsd)
    state = accumulation.reduce([column], group, Groups(group, groups))
    errors = np.array(accumulation.extract_columns(state, [column.type]).to_pylist()) / each - 1
    assert np.sqrt((errors**2).mean()) < rsd * 1.1
    assert abs(errors.mean()) < rsd / 5


@pytest.mark.parametrize("rsd", [0, 0.001, 0.5, True, "0.05"])
def test_rsd_is_within_its_range(rsd):
    with pytest.raises(OptionError, match="CountDistinct"):
        ApproxCountDistinct("x", rsd)


def test_hashes_never_change():
    assert hash_values(pa.array(["", "a", "beamish and more"])).tolist() == HASHES_OF_TEXT
    assert hash_values(pa.array([0, 1, -1])).tolist() == HASHES_OF_INTS


@given(st.lists(st.text(max_size=20) | st.none(), max_size=10), st.integers(0, 10))
def test_hashes_do_not_depend_on_position(texts, cut):
    column = pa.array(texts, pa.string())
    assert hash_values(column)[cut:].tolist() == hash_values(column.slice(cut)).tolist()
    assert len(set(hash_values(column).tolist())) == len(set(texts))


@pytest.mark.of_law("law-accumulators")
@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(data=st.data(), cut=st.integers(0, 30))
def test_approx_count_distinct_keeps_the_laws(kind, data, cut):
    type_, strategy = KINDS[kind]
    rows = data.draw(rows_of(st.none() | strategy))
    assert_laws(ApproxCountDistinct("x"), rows, [type_], cut)
    doubled = values(ApproxCountDistinct("x"), rows + rows, type_)
    assert doubled == values(ApproxCountDistinct("x"), rows, type_)
    assert len(doubled) == GROUPS


def test_the_two_series_are_those_of_their_definition():
    """Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017: sigma and tau."""
    x = np.array([0.0, 0.25, 0.5, 0.9, 1.0])
    tau = [(1 - v - sum((1 - v**2.0**-k) ** 2 * 2.0**-k for k in range(1, 60))) / 3 if 0 < v < 1 else 0.0 for v in x]
    assert np.allclose(_tau(x), tau, rtol=1e-12)
    sigma = [v + sum(v**2.0**k * 2.0 ** (k - 1) for k in range(1, 60)) for v in x[:-1]]
    assert np.allclose(_sigma(x[:-1]), sigma, rtol=1e-12)
