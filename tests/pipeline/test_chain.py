"""Chains as values: what they say of themselves, and what is refused when they are composed, run or explained."""

import pickle

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.kernels.column_names import PREFIX
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always
from tests.declared_options import evolve
from tests.own.windows import OwnGap
from tests.public_names import public_names

TOTALS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("10 seconds"))
    .key_by("user")
    .window(bm.FixedWindows(10))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness(60)
    .accumulating_and_retracting()
    .accumulate(total=Sum("score"))
)
BY_TOTAL = bm.Pipeline().key_by("total").accumulate(users=Count())


class Apart(OwnGap):
    merging = False  # what merges takes no retractions


SCRIPT = TestStream().add([{"ts": 1, "user": "ann", "score": 1}]).advance_watermark_to_infinity()


def test_a_chain_is_a_value():
    chain = TOTALS.then(BY_TOTAL).then(bm.Pipeline().accumulate(most=Max("users")))
    assert len(chain.flow.flows) == 3
    assert pickle.loads(pickle.dumps(chain)) == chain
    names = public_names(bm, bm.accumulations, bm.triggers)
    assert eval(repr(chain), names) == chain


def test_explain_describes_each_stage_of_a_chain():
    first, second, third = (
        TOTALS.then(BY_TOTAL).then(bm.Pipeline().accumulate(most=Max("users"))).explain().split("\n\n")
    )
    assert first.startswith("stage 1 of 3\nrows         by user; event time in ts")
    assert "before the clocks move; a retraction removes the retracted row" in second
    assert "watermark    that of the stage before\n" in second
    for stage in (second, third):
        assert "inherited from the panes: fixed, 10 seconds long" in stage
    assert "retraction" not in third.splitlines()[1]


@pytest.mark.parametrize(
    ("second", "rule"),
    [
        (BY_TOTAL.event_time("ts", bm.BoundedOutOfOrderness(0)), "no window"),
        (BY_TOTAL.window(bm.Sessions(5)), "a retraction may split a merged window"),
        (BY_TOTAL.discarding(), "discarding over a stage that retracts"),
        (BY_TOTAL.trigger(Always()), "add .discarding"),
    ],
)
def test_incompatible_stages_are_rejected_when_composed(second, rule):
    with pytest.raises(bm.PipelineError, match=rule):
        TOTALS.then(second)


@pytest.mark.parametrize(
    ("second", "rule"),
    [
        (BY_TOTAL.window(bm.Sessions(5)), "a retraction may split a merged window"),
        (BY_TOTAL.discarding(), "discarding over a stage that retracts"),
        (BY_TOTAL.trigger(Always()), "add .discarding"),
    ],
)
def test_incompatible_stages_are_rejected_when_run_or_explained(second, rule):
    """Calls that configure the last stage after it was chained."""
    options = second.flow.stage.options
    chain = evolve(TOTALS.then(BY_TOTAL), window=options.window, mode=options.mode, trigger=options.trigger)
    for call in (chain.explain, lambda: chain.run(SCRIPT)):
        with pytest.raises(bm.PipelineError, match=rule):
            call()


def test_a_column_that_the_panes_do_not_have_is_named():
    with pytest.raises(bm.ColumnError, match=r"there is no column 'score'"):
        TOTALS.then(bm.Pipeline().accumulate(s=Sum("score"))).run(SCRIPT)


@pytest.mark.parametrize(
    "second",
    [
        bm.Pipeline().accumulate(most=Max("score")),
        bm.Pipeline().key_by("score").accumulate(n=Count()),
        bm.Pipeline().window(Apart()).accumulating().accumulate(n=Count()),
        bm.Pipeline().where(pc.field("score") > 1).accumulate(n=Count()),
        bm.Pipeline().accumulate(n=Count()).having(pc.field("score") > 1),
        bm.Pipeline().key_by("score").versions("1 day"),
    ],
    ids=str,
)
def test_errors_list_only_the_users_columns(second):
    with pytest.raises(bm.ColumnError, match="the columns are") as caught:
        TOTALS.then(second).run(SCRIPT)
    assert "total" in str(caught.value) or "having" in str(caught.value)
    assert PREFIX not in str(caught.value)


def test_errors_list_no_internal_columns_of_changelogs_and_merges():
    changes = bm.Pipeline().from_changelog("diff").event_time("ts", bm.BoundedOutOfOrderness(0))
    row = {"ts": 1, "user": "ann", "_diff": 1}
    with pytest.raises(bm.ColumnError, match=r"the columns are \['ts', 'user'\]$"):
        changes.window(bm.FixedWindows(5)).accumulate(s=Sum("score")).run(TestStream().add([row]))
    both = bm.merge(a=TOTALS, b=changes.key_by("user")).window(Apart()).accumulating().accumulate(n=Count())
    with pytest.raises(bm.ColumnError, match=r"the columns are \['user', 'a.user', 'a.total', 'b.ts', 'b.user'\]$"):
        both.run(TestStream().add([{"ts": 1, "user": "ann", "score": 1}], input="a").add([row], input="b"))


def test_dropped_rows_are_not_forwarded():
    with pytest.raises(bm.PipelineError, match=r"with_dropped\(\) before another stage"):
        TOTALS.with_dropped().then(BY_TOTAL)


def test_a_stage_without_a_mode_has_one_pane_a_window_that_holds_all():
    script = (
        TestStream()
        .add([{"ts": 1, "user": "ann", "score": 1}, {"ts": 2, "user": "bob", "score": 1}])
        .add([{"ts": 3, "user": "ann", "score": 1}])
        .advance_watermark_to_infinity()
    )
    panes = TOTALS.then(BY_TOTAL).run(script)
    assert sorted((pane.key["total"], pane.values["users"], pane.timing) for pane in panes) == [
        (1, 1, "ON_TIME"),
        (2, 1, "ON_TIME"),
    ]
    assert isinstance(TOTALS.then(BY_TOTAL), bm.Pipeline)


FIRST = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10)).accumulate(n=Count())


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (3, r"then\(3\): must be a pipeline"),
        (None, "must be a pipeline"),
        (bm.merge(a=FIRST, b=FIRST).accumulate(n=Count()), "it takes several inputs; make this pipeline one of them"),
    ],
)
def test_then_rejects_other_values(stage, words):
    with pytest.raises(bm.PipelineError, match=words):
        FIRST.then(stage)


def test_a_chain_of_stages_can_be_chained_as_one():
    second, third = bm.Pipeline().accumulate(m=Sum("n")), bm.Pipeline().accumulate(o=Sum("m"))
    assert FIRST.then(second.then(third)) == FIRST.then(second).then(third)


def test_then_rejects_incompatible_stages():
    retracting = FIRST.trigger(bm.triggers.Always()).accumulating_and_retracting()
    with pytest.raises(bm.PipelineError, match="a retraction may split a merged window"):
        retracting.then(bm.Pipeline().window(bm.Sessions(5)).accumulate(n=Count()))
    with pytest.raises(bm.PipelineError, match="event_time"):
        FIRST.then(bm.Pipeline().accumulate(m=Sum("n"))).event_time("ts", bm.BoundedOutOfOrderness(0))
