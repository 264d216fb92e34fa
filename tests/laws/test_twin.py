"""Law: the engine gives what the slow twin gives, pane for pane, key by key (rules/laws.md#laws)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish import WITH_NEXT_PANE, BoundedOutOfOrderness, CalendarWindows, Pipeline, Sessions, WindowOption
from beamish.accumulations import Collect, Count, Last, Max, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterEach, AfterProcessingTime, Repeatedly
from tests.agreement import differences
from tests.cost import cost
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import dense_scripts, scripts
from tests.strategies.triggers import value_triggers, waiting_triggers
from tests.strategies.windows import windows
from tests.twin import run


def agree(data, script_of=scripts, **what):
    pipeline = data.draw(pipelines(**what))
    script = data.draw(script_of(pipeline))
    found = differences(pipeline.run(script), run(pipeline, script.events), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@pytest.mark.of_law("law-twin")
@given(st.data())
def test_engine_and_twin_give_the_same_panes(data):
    agree(data, asks=data.draw(st.integers(0, 3)) == 3)


def dense(_pipeline):
    return dense_scripts


@pytest.mark.of_law("law-twin")
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
        asks=data.draw(st.integers(0, 3)) == 3,
    )


@pytest.mark.of_law("law-twin", "law-merge-order")
@cost(2)
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_sessions(data):
    """Sessions that meet: of one key, with gaps as long as rows are apart, and triggers that wait meanwhile."""
    agree(
        data,
        script_of=dense,
        watermark=st.just(BoundedOutOfOrderness(0)),
        window=st.builds(Sessions, st.integers(2, 6)),
        trigger=st.one_of(waiting_triggers, waiting_triggers, value_triggers),
        lateness=st.sampled_from([0, 5, 40]),
        keys=st.just(()),
        accumulation=st.sampled_from([Count(), Sum("score")]),
    )


@attrs.frozen
class Absorbed(WindowOption):
    """A user's own windows, of two seconds: one that starts at a full ten takes all of its key into the first of them."""

    merging = True

    def assign(self, timestamp_us):
        start = timestamp_us // 2_000_000 * 2_000_000
        yield start, start + 2_000_000

    def merge(self, windows):
        if any(start % 10_000_000 == 0 for start, _ in windows):
            yield windows, windows[0]


@pytest.mark.of_law("law-twin")
@cost(2)
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_windows_that_absorb_others(data):
    """What a part keeps that the merged window is equal to, fired marks inside its trigger too.

    See rules/triggers.md#merging-triggers.
    """
    agree(
        data,
        script_of=dense,
        watermark=st.just(BoundedOutOfOrderness(0)),
        window=st.just(Absorbed()),
        trigger=waiting_triggers,
        lateness=st.sampled_from([5, 40]),
        keys=st.just(()),
        accumulation=st.sampled_from([Count(), Sum("score")]),
    )


def test_a_delay_that_has_fired_stays_so_in_a_merge_into_its_own_window():
    pipeline = (
        Pipeline()
        .event_time("ts", BoundedOutOfOrderness(0))
        .window(Absorbed())
        .trigger(AfterEach(AfterProcessingTime(5), AfterProcessingTime(50)), allow_data_loss=True)
        .allowed_lateness(1000)
        .discarding()
        .accumulate(n=Count())
    )
    script = (
        TestStream()
        .add([{"ts": 1}])
        .advance_processing_time_to(5)
        .add([{"ts": 5}])
        .add([{"ts": 10}])
        .advance_processing_time_to(10)
        .advance_processing_time_to(56)
    )
    panes = pipeline.run(script)
    assert [(pane.values["n"], pane.is_last) for pane in panes] == [(1, False), (2, True)]
    assert not differences(panes, run(pipeline, script.events), pipeline)


def test_windows_merged_away_are_retracted_though_the_pane_they_are_in_is_left_out():
    """rules/panes.md#only-updated-panes."""
    pipeline = (
        Pipeline()
        .event_time("ts", BoundedOutOfOrderness(0))
        .window(Absorbed())
        .trigger(Repeatedly(AfterCount(1)))
        .allowed_lateness(1000)
        .accumulating_and_retracting()
        .retract_merged(WITH_NEXT_PANE)
        .only_updated_panes()
        .accumulate(most=Max("x"))
    )
    script = TestStream()
    for ts in (2, 4, 10):
        script = script.add([{"ts": ts, "x": 1}])
    panes = pipeline.run(script)
    assert not differences(panes, run(pipeline, script.events), pipeline)
    assert [(pane.kind, pane.window.start.timestamp()) for pane in panes] == [
        ("PANE", 2),
        ("PANE", 4),
        ("RETRACTION", 4),
    ]


@pytest.mark.of_law("law-order-and-shards", "law-merge-order")
@given(st.data())
def test_the_order_of_rows_in_a_bundle_changes_nothing(data):
    """rules/laws.md#law-order-and-shards."""
    pipeline = data.draw(pipelines())
    script = data.draw(scripts(pipeline))
    shuffled = attrs.evolve(
        script,
        events=tuple(
            attrs.evolve(event, rows=tuple(data.draw(st.permutations(event.rows)))) if hasattr(event, "rows") else event
            for event in script.events
        ),
    )
    found = differences(pipeline.run(script), pipeline.run(shuffled), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), repr(shuffled), *found])
