"""Law: an option is a value: it survives pickle and repr, and is equal by what it says (rules/laws.md#law-options)."""

from __future__ import annotations

import _operator
import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
import tests.own.accumulations
import tests.own.triggers
import tests.own.windows
from beamish import accumulations, triggers
from tests.kinds.changes.strategy import changes
from tests.kinds.suppress.strategy import suppressed
from tests.public_names import public_names
from tests.strategies.pipelines import pipelines, rows_once


@pytest.mark.of_law("law-options")
@given(st.data())
def test_a_pipeline_survives_pickle_and_repr(data):
    pipeline = data.draw(st.one_of(pipelines(), suppressed(pipelines()), changes(), pipelines(once=True), rows_once()))
    names = {
        **vars(tests.own.windows),
        **vars(tests.own.triggers),
        **vars(tests.own.accumulations),
        **public_names(bm),
        **public_names(triggers),
        **public_names(accumulations),
        "tests": tests,
        "_operator": _operator,
    }
    for copy in (pickle.loads(pickle.dumps(pipeline)), eval(repr(pipeline), names)):
        assert copy == pipeline
        assert hash(copy) == hash(pipeline)
        assert repr(copy) == repr(pipeline)


@pytest.mark.of_law("law-options")
@given(st.data())
def test_pipelines_with_equal_reprs_are_equal(data):
    one, other = data.draw(pipelines()), data.draw(pipelines())
    assert (one == other) == (repr(one) == repr(other))


@pytest.mark.of_law("law-options")
@given(st.integers(0, 10**12), st.sampled_from(["microseconds", "milliseconds", "seconds"]))
def test_a_duration_does_not_depend_on_its_spelling(amount, unit):
    us = amount * {"microseconds": 1, "milliseconds": 1_000, "seconds": 1_000_000}[unit] + 1
    said = bm.Sessions(timedelta(microseconds=us))
    assert said == bm.Sessions(f"{us} microseconds") == eval(repr(said), public_names(bm))
