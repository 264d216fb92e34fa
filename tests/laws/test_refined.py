"""Law: what is taken, computed and let out by conditions is what the slow twin says (rules/stages.md#conditions)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.local import Variation, run
from tests.agreement import differences
from tests.said import evolve, said
from tests.seconds import S
from tests.strategies.chains import NOT_MERGING
from tests.strategies.formulas import SHOWN, TAKEN, one_of, refined
from tests.strategies.pipelines import modes, pipelines
from tests.strategies.scripts import scripts
from tests.strategies.triggers import usual_triggers
from tests.strategies.windows import taking
from tests.twin import run as run_twin

FIRST = pipelines().map(lambda pipeline: evolve(pipeline, accumulations={"n": Count(), "total": Max("score")}))


def agree(pipeline, script, how=None):
    found = differences(run(pipeline.flow, script.events, how), run_twin(pipeline, script.events), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@given(st.data())
def test_conditions_and_computed_columns_are_those_of_the_twin(data):
    pipeline = data.draw(FIRST.flatmap(refined))
    agree(pipeline, data.draw(scripts(pipeline)), Variation(shards=2, packs=2, round_trip=True))


@given(st.data())
def test_a_stage_takes_what_conditions_leave(data):
    first = data.draw(FIRST.flatmap(refined))
    first = evolve(first, with_dropped=False)
    signed = said(first).retracts
    window = taking(data.draw(NOT_MERGING), first.flow)
    mode = data.draw(modes.filter(lambda one: not signed or one is not bm.AccumulationMode.DISCARDING))
    more = {"more": Sum("more")} if said(first).derived else {}
    second = (
        bm.Pipeline()
        .trigger(data.draw(usual_triggers), allow_data_loss=True)
        .allowed_lateness(max(5, first.flow.gives.behind_us / S))
    )
    second = second.accumulation_mode(mode).accumulate(n=Count(), total=Sum("n"), **more)
    second = second if window is None else second.window(window)
    second = evolve(second, where=data.draw(st.none() | one_of(SHOWN)), having=data.draw(st.none() | one_of(SHOWN)))
    pipeline = first.then(second)
    agree(pipeline, data.draw(scripts(first)))


def test_all_conditions_are_drawn_over_rows_and_panes():
    assert all(
        isinstance(meaning({"score": 3, "n": 2, "timing": "LATE", "is_last": True}), (bool, int))
        for _, meaning in TAKEN + SHOWN
    )
