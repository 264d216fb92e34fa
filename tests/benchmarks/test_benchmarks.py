"""Loads and keys of benchmarks: arrivals are a repeatable Poisson process, keys follow their law."""

import itertools

import numpy as np
import pytest

from benchmarks.arrivals import SECOND_US, Load
from benchmarks.zipf import EXPONENT, keys_in_window

LOAD = Load(1_700_000_000 * SECOND_US, [(2.0, 1_000), (1.0, 20_000)])


def test_arrivals_of_ranges_are_those_of_the_whole():
    begin, middle, end = LOAD.bounds_us
    whole_us, keys = LOAD.arrivals(begin, end)
    cuts = [begin - 5, begin + 1, begin + 70_001, middle - 3, middle + 999, end + SECOND_US]
    parts = [LOAD.arrivals(*of) for of in itertools.pairwise(cuts)]
    assert np.array_equal(np.concatenate([at for at, _ in parts]), whole_us)
    assert np.array_equal(np.concatenate([of for _, of in parts]), keys)
    assert (np.diff(whole_us) >= 0).all()


def test_arrivals_have_their_rates_and_the_spread_of_a_poisson_process():
    begin, middle, end = LOAD.bounds_us
    first, _ = LOAD.arrivals(begin, middle)
    second, _ = LOAD.arrivals(middle, end)
    assert (len(first), len(second)) == pytest.approx((2_000, 20_000), rel=0.1)
    counts = np.bincount((second - middle) // 1_000, minlength=1_000)
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.2)


def test_nothing_arrives_before_the_load_or_after_it():
    begin, *_, end = LOAD.bounds_us
    assert [len(LOAD.arrivals(*of)[0]) for of in ((0, begin), (end, end + SECOND_US), (begin, begin))] == [0, 0, 0]


@pytest.mark.parametrize("distribution", ["uniform", "zipf"])
def test_the_keys_in_a_window_are_as_many_as_are_drawn(distribution):
    keys, rows = 5_000, 20_000
    unit = np.random.default_rng(1).random(rows)
    least = (keys + 1) ** (1 - EXPONENT)
    of = unit * keys if distribution == "uniform" else (1 - unit * (1 - least)) ** (1 / (1 - EXPONENT)) - 1
    drawn = np.unique(of.astype(np.int64))
    assert drawn.max() < keys
    assert keys_in_window(keys, rows, distribution) == pytest.approx(len(drawn), rel=0.02)
