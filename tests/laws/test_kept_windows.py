"""Law: the windows that are kept after a script are those of the slow twin, with what they hold (semantics.md#kept-windows)."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from beamish import Pane
from beamish.script.events import as_step
from tests.agreement import differences
from tests.lines import plain
from tests.strategies import merges
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts
from tests.twin.run import Twin


def as_panes(pipeline, script):
    """What the engine keeps, each window as a pane."""
    return [
        Pane(
            kept.key,
            kept.window,
            kept.values or {},
            index=0 if kept.closed else kept.panes,
            on_time_index=kept.new_rows,
            is_last=kept.closed,
        )
        for kept in pipeline.state(script).windows()
    ]


def twins(pipeline, script):
    """The same of the twin."""
    twin = Twin(pipeline.flow)
    for event in script.events:
        twin.step(as_step(event))
    return [
        Pane(key.columns, twin.bounds_of(bounds), {}, on_time_index=0, is_last=True)
        if live is None
        else Pane(
            key.columns,
            twin.bounds_of(bounds),
            twin.values_of(live),
            index=live.panes,
            on_time_index=len(live.new) + live.let_go,
        )
        for key, bounds, live in twin.kept()
    ]


def in_order(panes):
    """The same with their pairs in an order: they come in none (semantics.md#each-pair-once)."""
    return [
        attrs.evolve(pane, values={name: sorted(pairs, key=plain) for name, pairs in pane.values.items()})
        for pane in panes
    ]


@given(st.data())
def test_the_pairs_that_are_due_after_a_script_are_those_of_the_twin(data):
    pipeline = data.draw(merges.merges(once=True))
    script = data.draw(merges.scripts(pipeline))
    ours, theirs = in_order(as_panes(pipeline, script)), in_order(twins(pipeline, script))
    found = differences(ours, theirs, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@given(st.data())
def test_the_windows_kept_after_a_script_are_those_of_the_twin(data):
    pipeline = data.draw(pipelines())
    script = data.draw(scripts(pipeline))
    found = differences(as_panes(pipeline, script), twins(pipeline, script), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])
