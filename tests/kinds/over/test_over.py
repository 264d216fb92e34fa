"""Over stages (rules/over.md): Top n, state, restart, words."""

from __future__ import annotations

import json
from itertools import chain

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish import PaneChange, flow
from beamish.accumulations import Count, Sum, TopN
from beamish.checkpoint.words import stage_lines
from beamish.contract.stored import DictStore
from beamish.flow import descriptions
from beamish.kinds.over.options import OverOptions
from beamish.kinds.over.stage import OverStage
from beamish.local import stages_after
from beamish.stage_facts import stage_facts
from beamish.tables.notes import OVER
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always
from tests.agreement import differences
from tests.public_names import public_names
from tests.upgrades.carried import carried

START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user")


def rows(*times, user="ann", **columns):
    return [{"ts": time, "user": user, **columns} for time in times]


def corrected(frame, **options):
    return START.over(frame, **options).allowed_lateness(100).accumulating_and_retracting()


def stored(pipeline, script):
    """How many rows the first shard of a pipeline has stored, by table."""
    ((bound, stores),) = stages_after(pipeline.flow.completed, script.events)
    (store,) = stores
    return {
        table.layout.name: sum(int(segments.index["rows"].sum()) for segments in [segments_of(store, table.layout)])
        for table in bound.operator.tables()
    }


def segments_of(store, layout):
    from beamish.tables.segments import SegmentStore

    return SegmentStore(store, layout)


# Top n (rules/over.md#over-output)


def test_the_first_rows_of_a_key_are_a_table_that_changes():
    first = corrected(bm.Unbounded()).accumulate(n=bm.RowNumber()).having(pc.field("n") <= 2)
    script = TestStream().add(rows(1, 5, 7)).advance_watermark_to(8)
    panes = first.run(script.add(rows(3)))
    assert [(str(pane.change), pane.timestamp.second, pane.values["n"]) for pane in panes] == [
        (PaneChange.INSERT, 1, 1),
        (PaneChange.INSERT, 5, 2),
        (PaneChange.INSERT, 3, 2),
        (PaneChange.DELETE, 5, 2),
    ]
    assert [(pane.timestamp.second, pane.values["n"]) for pane in bm.live(panes)] == [(1, 1), (3, 2)]


def test_a_stage_after_it_counts_the_corrected_rows():
    totals = corrected(bm.Preceding(10)).accumulate(n=Count())
    most = totals.then(
        bm.Pipeline().window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(most=TopN(3, "n"))
    )
    script = TestStream().add(rows(1, 5)).advance_watermark_to(8).add(rows(3))
    assert [pane.values["most"] for pane in most.run(script)] == [[2, 1], [3, 2, 1]]


def test_computed_columns_are_those_of_each_row():
    change = (
        START.over(bm.Unbounded())
        .accumulate(before=bm.Lag("x", default=0))
        .with_columns(by=pc.field("x") - pc.field("before"))
    )
    script = TestStream().add([*rows(1, x=5), *rows(2, x=7)]).advance_watermark_to(3)
    assert [pane.values["by"] for pane in change.run(script)] == [5, 2]


def test_names_of_other_cases_are_columns_too():
    pipeline = START.over(bm.Unbounded()).accumulate(total=Sum("X"), before=bm.Lag("a.b"))
    script = TestStream().add([*rows(1, X=5, a={"b": 1}), *rows(2, X=7, a={"b": 2})]).advance_watermark_to(3)
    assert [(pane.values["total"], pane.values["before"]) for pane in pipeline.run(script)] == [(5, None), (12, 1)]


def test_an_overflow_names_the_value_and_a_fix_that_there_is():
    total = START.over(bm.PrecedingRows(1)).accumulate(total=Sum("x"))
    script = TestStream().add([*rows(1, x=2**62), *rows(2, x=2**62)]).advance_watermark_to(9)
    with pytest.raises(
        bm.NumericOverflowError, match=r"accumulate\(total=Sum.*after over.*does not fit bigint.*; cast"
    ):
        total.run(script)


# State (rules/over.md#over-state)


def script_until(last):
    script = TestStream()
    for time in range(0, last, 10):
        script = script.add(rows(time, x=1)).advance_watermark_to(time)
    return script


@pytest.mark.dear
@pytest.mark.parametrize(
    ("pipeline", "most"),
    [
        (START.over(bm.Preceding(50)).accumulate(n=Count()), {"rows": 8, "tail": 0, "past": 0}),
        (corrected(bm.Preceding(50)).accumulate(n=Count()), {"rows": 18, "tail": 0, "past": 0}),
        (START.over(bm.PrecedingRows(3)).accumulate(n=Count()), {"rows": 3, "tail": 3, "past": 1}),
        (START.over(bm.Unbounded()).accumulate(n=Count()), {"rows": 3, "tail": 0, "past": 1}),
        (START.over(bm.Unbounded()).accumulate(n=bm.RowNumber(), b=bm.Lag("x", 2)), {"rows": 3, "tail": 2, "past": 1}),
    ],
    ids=repr,
)
def test_rows_are_stored_within_frame_and_lateness(pipeline, most):
    # Segments of a minute are dropped, or counted in the past, as a whole.
    for until in (300, 600):
        found = stored(pipeline, script_until(until))
        assert found["rows"] <= most["rows"] + 6
        assert {**found, "rows": most["rows"]} == most


def test_a_key_without_rows_has_no_state():
    pipeline = START.over(bm.Preceding(50)).accumulate(n=Count())
    script = TestStream().add(rows(*range(9))).advance_watermark_to(20).advance_watermark_to(100)
    assert stored(pipeline, script) == {"rows": 0, "tail": 0, "past": 0}


def test_an_idle_key_starts_again():
    pipeline = START.over(bm.Unbounded()).forget_after(10).accumulate(n=bm.RowNumber(), after=bm.Lead("x", default=-1))
    script = TestStream().add([*rows(1, 2, x=1), *rows(9, user="bob", x=2)]).advance_watermark_to(11)
    script = script.advance_watermark_to(12).add(rows(13, x=3)).advance_watermark_to(23)
    panes = [[(pane.key["user"], *pane.values.values()) for pane in panes] for _, panes in script.trace(pipeline)]
    assert panes == [
        [],
        [("ann", 1, 1, 1, 1)],
        [("ann", 2, 1, 2, -1)],
        [],
        [("bob", 9, 2, 1, -1), ("ann", 13, 3, 1, -1)],
    ]
    assert stored(pipeline, script) == {"rows": 0, "tail": 0, "past": 0}


def test_state_shows_the_rows_that_wait():
    pipeline = corrected(bm.Unbounded()).accumulate(after=bm.Lead("x"))
    script = TestStream().add([*rows(1, 4, x=1), *rows(2, user="bob", x=2), *rows(40, x=3)]).advance_watermark_to(30)
    held = pipeline.state(script).held()
    assert [(one.key["user"], one.values["x"], one.values["after"], one.due and one.due.second) for one in held] == [
        ("bob", 2, None, None),
        ("ann", 1, None, None),
        ("ann", 3, None, 40),
    ]


# Restart (rules/over.md#over-restart)


SCRIPT = (
    TestStream()
    .add([*rows(1, 4, x=1), *rows(2, user="bob", x=2)])
    .advance_watermark_to(3)
    .add([*rows(2, x=3), *rows(8, user="bob", x=4)])
    .advance_watermark_to(30)
    .add([*rows(29, x=5), *rows(31, user="bob", x=6)])
    .advance_watermark_to_infinity()
)
PIPELINES = {
    "range": corrected(bm.Preceding(5)).accumulate(n=Count(), s=Sum("x")),
    "rows": START.over(bm.PrecedingRows(2)).accumulate(s=Sum("x")),
    "unbounded": START.over(bm.Unbounded()).accumulate(s=Sum("x"), n=bm.RowNumber(), f=bm.FirstValue("x")),
    "lead": corrected(bm.Unbounded()).accumulate(a=bm.Lead("x"), b=bm.Lag("x", 2)),
}


@pytest.mark.dear
@pytest.mark.parametrize("shards", [(1, 3), (3, 1)])
@pytest.mark.parametrize("name", PIPELINES)
def test_it_is_rescaled_after_any_step(name, shards):
    pipeline = PIPELINES[name]
    for first in range(1, len(SCRIPT.events)):
        both = [*chain(*carried(pipeline, pipeline, SCRIPT, first, shards))]
        assert not differences(pipeline.run(SCRIPT), both, pipeline)


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (corrected(bm.Preceding(6)).accumulate(n=Count(), s=Sum("x")), "frame"),
        (corrected(bm.Preceding(5)).accumulate(n=Count()), "values"),
        (corrected(bm.Preceding(5), order_by="x").accumulate(n=Count(), s=Sum("x")), "order_by"),
        (PIPELINES["range"].allowed_lateness(200), "allowed_lateness"),
        (PIPELINES["range"].discarding(), "mode"),
        (PIPELINES["range"].trigger(AfterWatermark(early=Always())), "early"),
    ],
)
def test_another_meaning_is_refused(now, what):
    ((bound, stores),) = stages_after(PIPELINES["range"].flow, SCRIPT.events[:3])
    operator = now.flow.bind({None: bound.operator.takes[0].schema}, shards=1).operator
    with pytest.raises(bm.StateError, match=rf"was written by over\(\.\.\.\) with {what} .*keep the old one"):
        operator.open(stores[0])


DISCARDING = PIPELINES["range"].discarding()


@pytest.mark.parametrize("now", [DISCARDING.with_dropped(), DISCARDING.having(pc.field("n") > 1)])
def test_columns_and_conditions_of_an_output_that_is_not_retracted_may_change(now):
    ((bound, stores),) = stages_after(DISCARDING.flow, SCRIPT.events[:3])
    now.flow.bind({None: bound.operator.takes[0].schema}, shards=1).operator.open(stores[0])


def test_inspect_shows_its_watermark_and_another_kind_in_its_place_is_refused():
    ((bound, stores),) = stages_after(PIPELINES["range"].flow, SCRIPT.events[:3])
    facts = stage_facts(dict(enumerate(stores)), descriptions(bound)[0])
    assert dict(stage_lines(facts, 0, 0, ()))["watermark"] == "at 1970-01-01 00:00:03"
    windows = START.window(bm.FixedWindows(5)).accumulate(n=Count()).flow
    operator = windows.bind({None: bound.operator.takes[0].schema}, shards=1).operator
    with pytest.raises(bm.StateError, match=r"has a stage of over\(\.\.\.\), .* now has a stage with windows"):
        operator.open(stores[0])


# Words


def test_a_pipeline_with_it_has_a_repr_that_evaluates_to_it():
    names = {
        **public_names(bm, bm.accumulations, bm.triggers),
        **vars(flow),
        "OverStage": OverStage,
        "OverOptions": OverOptions,
    }
    for pipeline in (*PIPELINES.values(), PIPELINES["range"].trigger(AfterWatermark(early=Always())).with_dropped()):
        assert eval(repr(pipeline), names) == pipeline


def test_explain_says_what_waits_and_what_is_stored():
    words = " ".join(PIPELINES["lead"].explain().split())
    assert (
        "a row is emitted when the watermark has passed the next row of its key; the last ones of a key wait" in words
    )
    assert "for each key its last 2 rows, for ever" in words
    words = " ".join(PIPELINES["range"].explain().split())
    assert "a row is stored until the watermark is 105 seconds past it" in words


def test_only_rows_that_may_be_corrected_retract():
    once = START.over(bm.Preceding("1 minute")).accumulate(n=Count())
    late = once.allowed_lateness("1 hour")
    assert [pipeline.flow.gives.retracts for pipeline in (once, once.accumulating_and_retracting())] == [False, True]
    assert [mode.flow.gives.retracts for mode in (late.discarding(), late.accumulating_and_retracting())] == [
        False,
        True,
    ]
    words = [" ".join(mode.explain().split()) for mode in (late.discarding(), late.accumulating_and_retracting())]
    assert ["it is not corrected" in text for text in words] == [True, False]
    assert ["it is retracted and the corrected row emitted" in text for text in words] == [False, True]


@pytest.mark.parametrize("change", [{"having": pc.field("n") > 1}, {"with_columns": pc.field("n") + 1}])
def test_output_that_a_retraction_repeats_may_not_change_under_a_checkpoint(change):
    """In either direction; notes of earlier versions have no word of it."""
    plain = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .over(bm.Preceding(5))
        .accumulating_and_retracting()
        .accumulate(n=Count())
    )
    refined = plain.having(change["having"]) if "having" in change else plain.with_columns(m=change["with_columns"])
    events = TestStream().add([{"ts": 1}]).events
    for then, now in ((plain, refined), (refined, plain)):
        ((_, (store,)),), ((bound, _),) = stages_after(then.flow, events), stages_after(now.flow, events)
        with pytest.raises(bm.StateError, match=f"was written by over.* with {next(iter(change))} "):
            bound.operator.open(DictStore(store))
        note = json.loads(store[OVER])
        del note["identity"]["having"], note["identity"]["with_columns"]
        bound.operator.open(DictStore({**store, OVER: json.dumps(note).encode()}))
    ((_, (store,)),), ((bound, _),) = stages_after(refined.flow, events), stages_after(refined.flow, events)
    bound.operator.open(DictStore(store))
