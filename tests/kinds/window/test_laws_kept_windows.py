"""Law: the windows that are kept after a script are those of the slow twin, with what they hold (rules/running.md#kept-windows)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish import Pane
from beamish.contract.at_rest import Asked, Keeps
from beamish.contract.stand_ins import UnknownWindows
from beamish.flow import descriptions
from beamish.local import stages_after
from beamish.script import as_step
from beamish.stage_facts import stage_facts
from tests.agreement import differences
from tests.kinds.window.strategy_of_key_watermarks import keyed
from tests.lines import plain
from tests.strategies import merges
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts
from tests.twin.run import Twin

EVERY = Asked(Keeps.WINDOWS)


def as_panes(pipeline, script):
    """The windows stored by the engine, each as a pane."""
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
def test_the_pairs_due_after_a_script_equal_the_twins(data):
    pipeline = data.draw(merges.merges(once=True))
    script = data.draw(merges.scripts(pipeline))
    ours, theirs = in_order(as_panes(pipeline, script)), in_order(twins(pipeline, script))
    found = differences(ours, theirs, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@pytest.mark.of_law("law-kept-windows")
@given(st.data())
def test_the_windows_stored_after_a_script_equal_the_twins(data):
    pipeline = data.draw(st.one_of(pipelines(), keyed()))
    script = data.draw(scripts(pipeline))
    found = differences(as_panes(pipeline, script), twins(pipeline, script), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@pytest.mark.of_law("law-kept-windows")
@given(st.data())
def test_state_reads_the_same_with_and_without_its_pipeline(data):
    pipeline = data.draw(st.one_of(pipelines(), keyed(), merges.merges(once=False)))
    script = data.draw(merges.scripts(pipeline) if len(pipeline.flow.inputs) > 1 else scripts(pipeline))
    for bound, stores in stages_after(pipeline.flow.completed, script.events):
        notes, (about,) = dict(enumerate(stores)), descriptions(bound)
        facts, known = stage_facts(notes, about), stage_facts(notes, known=bound.operator)
        bare = stage_facts(notes)  # as an older version wrote it
        assert sum(bare.asked(EVERY).read(store).num_rows for store in stores) == bare.windows
        for store in stores:
            without, with_it, kept = (
                answer.read(store).to_pylist()
                for answer in (facts.asked(EVERY), known.asked(EVERY), bound.operator.answer(EVERY))
            )
            names = facts.plan.value_schema.names if facts.plan else []
            is_known = all(of.trigger is not None for of in facts.plans.values())
            is_read = all(not isinstance(of.plan.window, UnknownWindows) for of in facts.plans.values())
            waits = (
                ("due", "expires", "waits_for") if not is_known else () if is_read else ("waits_for",)
            )  # it may merge
            assert as_read(without, names, waits) == as_read(with_it, names, waits)
            assert as_read(kept, names, ()) == as_read(
                with_it, names, with_it[0].keys() - kept[0].keys() if kept else ()
            )
            assert sum(row["waits_for"] is None for row in with_it) == sum(row["closed"] for row in kept)


def as_read(rows, names, unknown):
    """Windows with the values that both readers know, and without some columns; NaN equals NaN."""
    unknown = [*unknown, *(() if names else ("values", "last_values"))]
    shown = [{name: cell for name, cell in row.items() if name not in unknown} for row in rows]
    for row in shown:
        for of in {"values", "last_values"} & row.keys():
            row[of] = row[of] and {name: row[of][name] for name in names}
    return [repr(sorted(row.items())) for row in shown]
