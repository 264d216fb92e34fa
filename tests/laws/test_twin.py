"""Windows that absorb others: cases that the laws do not cover."""

from __future__ import annotations

from beamish import WITH_NEXT_PANE, BoundedOutOfOrderness, Pipeline
from beamish.accumulations import Count, Max
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterEach, AfterProcessingTime, Repeatedly
from tests.agreement import differences
from tests.own.windows import Absorbed
from tests.twin.run import run


def test_a_fired_delay_stays_fired_when_merged_into_its_own_window():
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


def test_merged_windows_are_retracted_though_the_merged_pane_is_skipped():
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
