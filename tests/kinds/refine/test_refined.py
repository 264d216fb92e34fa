"""Conditions and computed columns, as they are written (rules/stages.md#conditions)."""

import pickle

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import Always

N, SCORE = pc.field("n"), pc.field("score")
PLAYS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .trigger(Always())
    .accumulating_and_retracting()
    .accumulate(n=Count(), total=Sum("score"))
)
REFINED = PLAYS.where(SCORE > 0).where(SCORE < 9).with_columns(double=N * 2).having(pc.field("double") >= 4)
ROWS = [{"ts": 1, "team": "red", "score": score} for score in (1, 2, 9, 0, None)]


def test_conditions_add_up_and_are_part_of_a_pipelines_value():
    assert PLAYS.where((SCORE > 0) & (SCORE < 9)).with_columns(double=N * 2).having(pc.field("double") >= 4) == REFINED
    assert pickle.loads(pickle.dumps(REFINED)) == REFINED
    assert hash(REFINED) == hash(pickle.loads(pickle.dumps(REFINED)))
    assert PLAYS.having(pc.field("double") >= 4) != REFINED
    assert ".where(((score > 0) and (score < 9)))" in repr(REFINED)


def test_explain_lists_conditions_and_columns():
    words = " ".join(REFINED.explain().split())
    assert "where only rows with ((score > 0) and (score < 9)); the others still advance the watermark" in words
    assert "columns computed: double=multiply_checked(n, 2)" in words
    assert "having only panes with (double >= 4) are emitted, and only their retractions" in words


def test_a_filtered_pane_is_not_retracted():
    script = TestStream().add(ROWS[:1]).add(ROWS[1:]).add(ROWS[:1])
    panes = [(str(pane.kind), pane.index, pane.values["double"]) for pane in REFINED.run(script)]
    assert panes == [("PANE", 1, 4), ("RETRACTION", 1, 4), ("PANE", 2, 6)]


def test_with_a_suppress_conditions_apply_to_its_output():
    final = REFINED.suppress(bm.UntilWindowCloses())
    script = TestStream().add(ROWS).add([{"ts": 1, "team": "blue", "score": 5}])
    (held, _) = final.state(script).held()
    assert held.values == {"n": 2, "total": 3}
    (pane,) = final.run(script.advance_watermark_to(10))
    assert (pane.key, pane.values) == ({"team": "red"}, {"n": 2, "total": 3, "double": 4})


def test_a_formula_that_fails_names_the_value_and_stops():
    broken = PLAYS.with_columns(share=pc.field("total") / (N - 1))
    with pytest.raises(
        bm.UserFunctionError,
        match=r"with_columns\(share=.*divide by zero; a checkpoint does not allow another expression: begin a new one",
    ):
        broken.run(TestStream().add(ROWS[:1]))
