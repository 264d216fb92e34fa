"""Law: the engine gives what the slow twin gives, pane for pane, key by key (DESIGN section 5)."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from beamish import BoundedOutOfOrderness, CalendarWindows, Sessions
from beamish.accumulations import Collect, Count, Last, Sum
from tests.agreement import differences
from tests.strategies import dense_scripts, pipelines, scripts, waiting_triggers, windows
from tests.twin import run


def agree(data, script_of=scripts, **what):
    pipeline = data.draw(pipelines(**what))
    script = data.draw(script_of(pipeline.options))
    found = differences(pipeline.run(script), run(pipeline.options, script.events), pipeline.options)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@given(st.data())
def test_engine_and_twin_give_the_same_panes(data):
    agree(data)


def dense(_options):
    return dense_scripts


@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_long_scripts(data):
    agree(
        data,
        script_of=dense,
        watermark=st.just(BoundedOutOfOrderness(0)),
        keys=st.just(()),
        window=windows.filter(lambda option: not isinstance(option, CalendarWindows)),
        lateness=st.sampled_from([0, 5, 40]),
        accumulation=st.sampled_from([Count(), Sum("score"), Collect("score"), Last("score")]),
    )


@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_sessions(data):
    """Sessions that meet: of one key, with gaps as long as rows are apart, and triggers that wait meanwhile."""
    agree(
        data,
        script_of=dense,
        watermark=st.just(BoundedOutOfOrderness(0)),
        window=st.builds(Sessions, st.integers(2, 6)),
        trigger=waiting_triggers,
        lateness=st.sampled_from([0, 5, 40]),
        keys=st.just(()),
        accumulation=st.sampled_from([Count(), Sum("score")]),
    )


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
