"""Laws of tables and their versions (semantics.md#versions): the engine is the twin, and what order and packing do not change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from beamish.local import Variation, run
from tests.agreement import differences
from tests.strategies.versions import Drawing, followed, no, scripts, versions
from tests.twin import run as run_twin

UNLISTED = Drawing(with_dropped=no)


def agree(pipeline, script):
    found = differences(pipeline.run(script), run_twin(pipeline, script.events), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


def changes_nothing(pipeline, script, how):
    found = differences(pipeline.run(script), run(pipeline.flow, script.events, how), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- as it is, + otherwise", *found])


@given(st.data())
def test_engine_and_twin_give_the_same_versions(data):
    pipeline = data.draw(versions())
    agree(pipeline, data.draw(scripts(pipeline)))


@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_a_stage_over_versions(data):
    pipeline = data.draw(followed(versions(how=UNLISTED)))
    agree(pipeline, data.draw(scripts(pipeline)))
