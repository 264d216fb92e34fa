"""A stage kind that is not a window operator is a folder and runs wherever stages run."""

from __future__ import annotations

from itertools import chain

import pytest

import beamish as bm
from beamish import flow
from beamish.checkpoint.words import stage_lines
from beamish.flow import descriptions
from beamish.kinds.window.plan.options import WindowOptions
from beamish.kinds.window.stage import WindowStage
from beamish.local import stages_after
from beamish.stage_facts import stage_facts
from beamish.testing import TestStream
from tests.agreement import differences
from tests.kinds.hold_back.operator import HoldBackOperator
from tests.kinds.hold_back.pipelines import COUNTS, FIRST, PIPELINES, SCRIPT, SOURCE
from tests.kinds.hold_back.stage import HoldBack, held_back
from tests.public_names import public_names
from tests.upgrades.carried import carried


def came(pipeline):
    return [[(pane.key, dict(pane.values)) for pane in panes] for _, panes in SCRIPT.trace(pipeline)]


def test_rows_are_emitted_in_order_of_time_when_the_watermark_is_the_span_past_them():
    times = [[values["ts"] for _, values in panes] for panes in came(PIPELINES["rows held back"])]
    assert times == [[], [], [1], [2], [2], [3, 9]]


def test_the_held_watermark_makes_nothing_late_downstream():
    panes = [pane for _, panes in SCRIPT.trace(PIPELINES["rows held back, then counted"]) for pane in panes]
    assert {pane.timing for pane in panes} == {bm.PaneTiming.ON_TIME}
    assert sum(pane.values["n"] for pane in panes) == 5


def test_it_takes_the_panes_of_a_stage_and_gives_them_to_the_next():
    assert came(PIPELINES["counts held back"])[3] == [({"team": "red"}, {"n": 1, "sum": 2})]
    (pane,) = PIPELINES["counts held back, then counted"].run(SCRIPT)
    assert pane.values == {"counts": 4, "n": 4}


def test_state_shows_the_rows_that_wait():
    first = TestStream(SCRIPT.events[:3])
    assert [(one.key, dict(one.values), one.due.second) for one in PIPELINES["rows held back"].state(first).held()] == [
        ({"team": "blue"}, {"ts": 2, "score": None}, 7),
        ({"team": "red"}, {"ts": 3, "score": 1}, 8),
    ]
    with pytest.raises(bm.PipelineError, match=r"windows\(\): no stage has windows"):
        PIPELINES["rows held back"].state(first).windows()


def test_inspect_shows_its_watermark_and_check_upgrade_another_kind_in_its_place():
    flow = PIPELINES["rows held back"].flow
    ((bound, stores),) = stages_after(flow, SCRIPT.events[:3])
    facts = stage_facts(dict(enumerate(stores)), descriptions(bound)[0])
    assert dict(stage_lines(facts, 0, 0, ()))["watermark"] == "at 1970-01-01 00:00:06"
    windows = FIRST.flow.bind({None: bound.operator.takes[0].schema}, shards=1).operator
    with pytest.raises(bm.StateError, match=r"has a stage of held_back\(\.\.\.\), .* now has a stage with windows"):
        windows.open(stores[0])


def test_a_suppress_holds_its_output():
    held = held_back(5, SOURCE).suppress(bm.UntilTimeLimit(10, clock="processing"))
    script = TestStream().step([{"ts": 3, "team": "red"}, {"ts": 1, "team": "blue"}, {"ts": 4, "team": "red"}], clock=1)
    came = [
        [(pane.key, pane.values) for pane in panes]
        for _, panes in script.step(watermark=9, clock=2).step(clock=12).trace(held)
    ]
    assert came == [[], [], [({"team": "blue"}, {"ts": 1}), ({"team": "red"}, {"ts": 4})]]


def test_explain_has_its_words():
    words = PIPELINES["counts held back, then counted"].explain()
    assert "stage 2 of 3\nrows         held back until the watermark is 5 seconds past their event time" in words


def test_it_refuses_invalid_inputs_when_it_is_composed():
    retracting = FIRST.trigger(bm.triggers.Always()).accumulating_and_retracting()
    with pytest.raises(bm.PipelineError, match="which does not retract"):
        held_back(5, retracting).then(COUNTS)
    with pytest.raises(bm.OptionError, match="must be above 0"):
        held_back(0, FIRST)


def test_a_pipeline_with_it_has_a_repr_that_evaluates_to_it():
    names = {**public_names(bm, bm.accumulations), **vars(flow), "HoldBack": HoldBack, "WindowStage": WindowStage}
    for pipeline in PIPELINES.values():
        assert (
            eval(repr(pipeline), {**names, "WindowOptions": WindowOptions, "Default": bm.triggers.Default}) == pipeline
        )


@pytest.mark.dear
@pytest.mark.parametrize("shards", [(1, 3), (3, 1), (2, 2)])
@pytest.mark.parametrize("name", PIPELINES)
def test_a_custom_kind_is_rescaled_by_its_declaration(name, shards):
    pipeline, script = PIPELINES[name], SCRIPT
    for first in range(1, len(script.events)):
        both = [*chain(*carried(pipeline, pipeline, script, first, shards))]
        assert not differences(pipeline.run(script), both, pipeline)


def test_a_kind_that_declares_no_state_is_not_rescaled(monkeypatch):
    monkeypatch.setattr(HoldBackOperator, "notes", lambda _: ())
    pipeline = PIPELINES["rows held back"]
    with pytest.raises(bm.StateError, match="HoldBackOperator does not declare the state of its shards"):
        carried(pipeline, pipeline, SCRIPT, 1, (1, 2))
