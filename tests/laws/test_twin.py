"""Law: the engine gives what the slow twin gives, pane for pane, key by key (DESIGN section 5)."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from tests.agreement import differences
from tests.strategies import pipelines, scripts, sessions
from tests.twin import run


def agree(data, **what):
    pipeline = data.draw(pipelines(**what))
    script = data.draw(scripts(pipeline.options))
    found = differences(pipeline.run(script), run(pipeline.options, script.events), pipeline.options)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@given(st.data())
def test_engine_and_twin_give_the_same_panes(data):
    agree(data)


@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_sessions(data):
    agree(data, window=sessions)


@given(st.data())
def test_the_order_of_rows_in_a_bundle_changes_nothing(data):
    """RULES 33."""
    pipeline = data.draw(pipelines())
    script = data.draw(scripts(pipeline.options))
    shuffled = attrs.evolve(
        script,
        events=tuple(
            attrs.evolve(event, rows=tuple(data.draw(st.permutations(event.rows)))) if hasattr(event, "rows") else event
            for event in script.events
        ),
    )
    found = differences(pipeline.run(script), pipeline.run(shuffled), pipeline.options)
    assert not found, "\n".join([repr(pipeline), repr(script), repr(shuffled), *found])
