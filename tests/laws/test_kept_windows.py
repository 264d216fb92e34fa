"""Law: the windows that are kept after a script are those of the slow twin, with what they hold (rules/running.md#kept-windows)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish import Pane
from beamish.at_rest.stage_facts import stage_facts
from beamish.at_rest.stage_plans import window_plan
from beamish.description import descriptions
from beamish.instants import END_OF_TIME_US
from beamish.kinds.window.kept_windows import kept_windows
from beamish.local import stages_after
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
    """The same with their pairs in an order: they come in none (rules/stages.md#each-pair-once)."""
    return [
        attrs.evolve(pane, values={name: sorted(pairs, key=plain) for name, pairs in pane.values.items()})
        for pane in panes
    ]


@pytest.mark.of_law("law-kept-windows")
@given(st.data())
def test_the_pairs_that_are_due_after_a_script_are_those_of_the_twin(data):
    pipeline = data.draw(merges.merges(once=True))
    script = data.draw(merges.scripts(pipeline))
    ours, theirs = in_order(as_panes(pipeline, script)), in_order(twins(pipeline, script))
    found = differences(ours, theirs, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@pytest.mark.of_law("law-kept-windows")
@given(st.data())
def test_the_windows_kept_after_a_script_are_those_of_the_twin(data):
    pipeline = data.draw(pipelines())
    script = data.draw(scripts(pipeline))
    found = differences(as_panes(pipeline, script), twins(pipeline, script), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


def as_read(rows, names):
    """Rows of kept windows, by what both readers know of them."""
    return sorted(
        repr([row[name] for name in ("window", "new_rows", "panes", "closed")] + [row[name] for name in names])
        for row in rows
    )


@pytest.mark.of_law("law-kept-windows")
@given(st.data())
def test_a_state_says_without_its_pipeline_what_it_says_with_it(data):
    pipeline = data.draw(st.one_of(pipelines(), merges.merges(once=False)))
    script = data.draw(merges.scripts(pipeline) if len(pipeline.flow.inputs) > 1 else scripts(pipeline))
    for bound, stores in stages_after(pipeline.flow.completed, script.events):
        notes, (about,) = dict(enumerate(stores)), descriptions(bound)
        plan, facts, known = (
            window_plan(bound.operator),
            stage_facts(notes, about),
            stage_facts(notes, plan=window_plan(bound.operator)),
        )
        bare = stage_facts(notes)  # as an older version wrote it
        assert sum(bare.reader.read(store).num_rows for store in stores) == bare.windows
        for store in stores:
            without, with_it = facts.reader.read(store), known.reader.read(store)
            kept = kept_windows(plan, store, (-END_OF_TIME_US, END_OF_TIME_US)).to_pylist()
            names = without["values"].type.names if "values" in without.schema.names else []
            flat = [row | (row.get("values") or dict.fromkeys(names)) for row in without.to_pylist()]
            assert as_read(flat, names) == as_read(kept, names)
            if all(of.trigger is not None for of in facts.plans.values()):
                assert without.select(["due", "expires", "waits_for"]).equals(
                    with_it.select(["due", "expires", "waits_for"])
                )
            assert with_it["waits_for"].null_count == sum(row["closed"] for row in kept)
