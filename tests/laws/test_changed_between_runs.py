"""Law: a run that continues from another pipeline's checkpoint follows rules/running.md#restart for each change (#law-changed-between-runs)."""

from __future__ import annotations

from itertools import chain

import attrs
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, Count, Last, Max, Sum
from beamish.errors import StateError
from beamish.flow import Panes
from beamish.kinds.as_of.stage import AsOfStage
from beamish.kinds.suppress.stage import Suppressed
from beamish.kinds.versions.stage import VersionsStage
from beamish.script import as_step, script_rows
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Always, Repeatedly
from tests.agreement import differences
from tests.cost import cost
from tests.declared_options import evolve, said
from tests.kinds.refine.strategy import Shown, refined
from tests.kinds.suppress.strategy import suppresses
from tests.kinds.versions import strategy as tables
from tests.kinds.window.strategy_of_rows import counted
from tests.kinds.window.windowings import of_windowing
from tests.strategies import merges
from tests.strategies.chains import LATER, chains
from tests.strategies.changed import changed, changed_tables, checked
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.scripts import dense_scripts, scripts
from tests.strategies.triggers import waiting_triggers
from tests.strategies.windows import windowings, windows
from tests.twin.ledger import told
from tests.twin.run import run as run_twin
from tests.twin.run import twin_of
from tests.upgrades.carried import differences_after, in_two_runs

of_scores = st.sampled_from([Count(), Sum("score"), Max("score"), Collect("score"), Last("score")])


def change(twin, then, now):
    """Each changed stage continues with its new options."""
    if isinstance(then.stage, Suppressed | VersionsStage | AsOfStage):
        twin.change_stage(now)
        return
    if then.stage != now.stage:
        twin.change(now)
    for name, one, other in zip(twin.names, then.inputs, now.inputs, strict=True):
        if isinstance(one, Panes):
            change(twin.before[name], one.flow, other.flow)


def of_twin(then, now, script, first):
    twin, out = twin_of(then.flow.completed), []
    for number, event in enumerate(script.events):
        if number == first:
            change(twin, then.flow.completed, now.flow.completed)
        out += told(now.flow if number >= first else then.flow, twin.step(as_step(event)))
    return out


def agree(then, now, script, first):
    if script_rows(then.flow, script.events).any:
        engine = [*chain(*in_two_runs(then, now, script, first))]
        found = differences(engine, of_twin(then, now, script, first), now)
        lines = [repr(then), repr(now), f"{first} of {script!r}", "- engine, + twin"]
        assert not found, "\n".join([*lines, *found])


def any_way(**ways):
    """A strategy of a changed pipeline, which may differ in anything; ``ways``: how."""
    return lambda then: changed(then, **ways)


@st.composite
def of_a_stage(draw, then):
    """Another last stage of two, or another first one."""
    if draw(st.booleans()):
        return draw(changed(then, accumulation=LATER))
    (panes,) = then.flow.inputs
    first = draw(changed(bm.Pipeline(panes.flow)).filter(lambda one: not said(one).with_dropped))
    now = bm.Pipeline(attrs.evolve(then.flow, inputs=(attrs.evolve(panes, flow=first.flow),)))
    assume(checked(now))
    return now


@st.composite
def held(draw):
    """Pipelines under a suppress. (Buffers are per shard, so there are none.)"""
    plain = draw(pipelines())
    return plain.then(draw(suppresses(plain.flow, buffers=st.just(bm.Buffer()))))


def waiting(**what):
    """Pipelines of one key, in which windows wait for something as the run ends."""
    return pipelines(
        watermark=st.just(bm.BoundedOutOfOrderness(0)),
        keys=st.just(()),
        trigger=waiting_triggers,
        lateness=st.sampled_from([0, 5, 40]),
        accumulation=of_scores,
        **what,
    )


def dense(_pipeline):
    return dense_scripts


CORRECTED = tables.Drawing(policy=tables.simple, history=st.just(1000), whole=tables.yes, mode=st.just(retracting))
"""Rows that are corrected for long."""
of_waiting = any_way(trigger=waiting_triggers, accumulation=of_scores, ids=st.just(("score",)))
short = windows.filter(lambda option: not isinstance(option, bm.CalendarWindows))
CASES = {
    "windows": (
        st.integers(0, 3).flatmap(lambda number: pipelines(asks=number == 3)),
        scripts,
        any_way(ids=st.sampled_from([("score",), ("name", "score")])),
    ),
    "windows, long scripts": (waiting(window=short), dense, of_waiting),
    "sessions, long scripts": (
        waiting(window=st.builds(bm.Sessions, st.integers(2, 6)), mode=st.just(retracting)),
        dense,
        of_waiting,
    ),
    "windows of rows": (counted(), scripts, any_way(ids=st.just(("score",)))),
    "stage over panes": (chains(), scripts, of_a_stage),
    "merge": (merges.merges(), merges.scripts, any_way()),
    "suppressed": (held(), scripts, any_way()),
    "versions": (tables.versions(), tables.scripts, changed_tables),
    "as-of join": (
        st.one_of(tables.as_of_joins(), tables.as_of_joins(of=CORRECTED, lefts=("rows",), tables=("rows",))),
        tables.scripts,
        changed_tables,
    ),
}
"""Pipelines, their scripts, and what draws another pipeline for one."""


@pytest.mark.of_law("law-changed-between-runs")
@pytest.mark.parametrize("case", CASES)
@cost(2)
@given(data=st.data())
def test_another_pipeline_continues(case, data):
    pipelines_, scripts_, another = CASES[case]
    then = data.draw(pipelines_)
    script = data.draw(scripts_(then))
    agree(then, data.draw(another(then)), script, data.draw(st.integers(1, len(script.events))))


@pytest.mark.of_law("law-changed-between-runs")
def test_panes_gathered_before_are_retracted_with_the_next_pane():
    def every(rows):
        sessions = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.Sessions(6))
        trigger = Repeatedly(AfterCount(rows))
        return sessions.trigger(trigger, allow_data_loss=True).accumulating_and_retracting().accumulate(n=Count())

    times = [
        [10, 10, 10],
        [13],
        [16],
        [30, 30, 30, 30],
    ]  # a pane, a merge, and in the second run: a merge, another pane
    script = TestStream()
    for of_bundle in times:
        script = script.add([{"ts": time} for time in of_bundle])
    agree(every(3).retract_merged(bm.WITH_NEXT_PANE), every(4), script.advance_watermark_to(50), 2)


@pytest.mark.of_law("law-changed-between-runs")
@given(st.data())
def test_added_windowings_start_with_the_next_rows(data):
    """Each, as the pipeline of it alone would give it: of one that is added, to which no row came before."""
    base = data.draw(pipelines(watermark=st.just(bm.BoundedOutOfOrderness(0))))
    options = data.draw(windowings(said(base).window)).options
    there = data.draw(st.lists(st.sampled_from(sorted(options)), min_size=1, unique=True))
    now = evolve(base, window=bm.Windowings(options))
    then = evolve(base, window=bm.Windowings({name: options[name] for name in there}))
    script = data.draw(scripts(base))
    first = data.draw(st.integers(1, len(script.events)))
    assume(checked(now) and checked(then) and script_rows(now.flow, script.events).any)
    panes = [*chain(*in_two_runs(then, now, script, first))]
    events = [*map(without_rows, script.events[:first]), *script.events[first:]]
    for name, window in options.items():
        own = run_twin(evolve(base, window=window), script.events if name in there else events)
        found = differences(of_windowing(panes, name), own, base)
        lines = [repr(then), repr(now), name, f"{first} of {script!r}", "- engine, + twin"]
        assert not found, "\n".join([*lines, *found])


def without_rows(event):
    return attrs.evolve(event, rows=()) if as_step(event).rows else event


@pytest.mark.parametrize("names", [("there", "more"), ("more", "there")])
def test_buffered_updates_survive_an_added_windowing(names):
    at = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
    plain, more = (
        at.window({name: bm.FixedWindows(2) for name in of}).trigger(Always()).accumulating().accumulate(n=Count())
        for of in (("there",), names)
    )
    script = TestStream().advance_watermark_to(-1).add([{"ts": 0}]).advance_watermark_to(0)
    held = plain.suppress(bm.UntilTimeLimit(9, clock="event"))
    assert any(one.refused for one in differences_after(held, more, script, 2))
    with pytest.raises(StateError, match="has 1 buffered updates"):
        in_two_runs(held, more, script, 2)


@pytest.mark.of_law("law-changed-between-runs")
@given(st.data())
def test_changed_conditions_apply_from_the_next_pane_on(data):
    """Of panes that are not retracted."""
    plain = data.draw(pipelines().filter(lambda one: not said(one).retracts))
    plain = evolve(plain, accumulations={"n": Count(), "total": Max("score"), "each": Collect("score")})
    then, now = (data.draw(refined(plain, where=False)) for _ in range(2))
    script = data.draw(scripts(plain))
    assume(script_rows(plain.flow, script.events).any)
    first = data.draw(st.integers(1, len(script.events)))
    panes = [*chain(*in_two_runs(then, now, script, first))]
    each = zip((then, now), in_two_runs(plain, plain, script, first), strict=True)
    shown = [pane for one, of in each for pane in Shown(said(one).having, said(one).derived, said(one).explode).of(of)]
    if said(then).explode or said(now).explode:  # no item replaces another, and an empty array is not numbered
        panes, shown = (
            [attrs.evolve(pane, change=bm.PaneChange.INSERT, sequence=0) for pane in some] for some in (panes, shown)
        )
    found = differences(panes, shown, plain)
    assert not found, "\n".join([repr(then), repr(now), f"{first} of {script!r}", "- engine, + of all panes", *found])


NARROW_AND_WIDE = {
    "score": [(pa.int8(), pa.int16()), (pa.int16(), pa.int64()), (pa.int32(), pa.int64())],
    "cost": [(pa.decimal128(4, 2), pa.decimal128(5, 2)), (pa.decimal128(12, 2), pa.decimal128(30, 2))],
}


@pytest.mark.of_law("law-changed-between-runs")
@given(st.data())
def test_widened_types_equal_wide_types_from_the_start(data):
    pipeline = data.draw(st.one_of(pipelines(), chains()))
    script = data.draw(scripts(pipeline))
    assume(script_rows(pipeline.flow, script.events).any)
    types = {name: data.draw(st.sampled_from(of)) for name, of in NARROW_AND_WIDE.items()}
    narrow, wide = ({name: both[number] for name, both in types.items()} for number in (0, 1))
    assume(len(script.events) > 1)
    first = data.draw(st.integers(1, len(script.events) - 1))
    changes = differences_after(pipeline, pipeline, script, first, (narrow, wide))
    if any(one.refused for one in changes):  # such as whole rows, and what functions make of them
        with pytest.raises(StateError, match="was written with"):
            in_two_runs(pipeline, pipeline, script, first, (narrow, wide))
        return
    widened, always = (
        [*chain(*in_two_runs(pipeline, pipeline, script, first, (then, wide)))] for then in (narrow, wide)
    )
    found = differences(widened, always, pipeline)
    assert not found, "\n".join([repr(pipeline), f"{first} of {script!r}", "- widened, + always wide", *found])


def test_due_rows_stay_due_under_a_longer_grace():
    at = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
    then, now = (
        bm.as_of_join(orders=at, rates=at.versions(99), grace=grace).accumulating_and_retracting() for grace in (0, 9)
    )
    script = TestStream().add([{"ts": 1, "rate": 1}], input="rates").add([{"ts": 3, "n": 1}], input="orders")
    script = script.advance_watermark_to(5).add([{"ts": 2, "rate": 2}], input="rates")
    first, second = in_two_runs(then, now, script, 3)
    assert [pane.timing for pane in first] == ["ON_TIME"]
    assert [(pane.kind, pane.timing, pane.on_time_index) for pane in second] == [
        ("RETRACTION", "ON_TIME", 0),
        ("PANE", "LATE", 1),
    ]
    agree(then, now, script, 3)
