"""Triggers on merged windows, and on sub-triggers that have already fired.

See rules/triggers.md#or-finally, #merging-triggers.
"""

from decimal import Decimal

import attrs
import numpy as np
import pytest

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.kinds.window.state.window_table import TriggerNow, TriggerState, trigger_columns
from beamish.tables.working_table import new_columns
from beamish.testing import TestStream
from beamish.triggers import (
    AfterAll,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterValue,
    Always,
    Never,
    OrFinally,
    Trigger,
)

SESSIONS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .window(bm.Sessions(10))
    .discarding()
    .accumulate(n=Count())
)


@attrs.frozen
class Once(Trigger):
    """A user's trigger that is finished when it has fired, and must not fire again."""

    def create(self):
        return "waits"

    def should_fire(self, state, context):
        return True

    def on_fire(self, state, context):
        assert state == "waits"
        return "has fired", True


def windows(trigger, number):
    """The state of a trigger in this many new windows, and clocks that have not started."""
    declared = dict(trigger_columns(trigger)) | {"start_us": ("int64", 0), "end_us": ("int64", 10)}
    columns = new_columns(declared | {"asks_at_end": ("bool", False)}, number)
    return TriggerState(trigger, columns), TriggerNow(columns, 0, 0, merging=True)


def test_after_all_fires_only_the_parts_that_have_not_fired():
    trigger = AfterAll(Once(), Always())
    state, now = windows(trigger, 2)
    at = np.arange(2)
    Once().on_fire_columns(state.parts[0], at[:1], now)
    trigger.on_fire_columns(state, at, now)
    assert state.finished.tolist() == [True, True]
    assert state.parts[0].finished.tolist() == [True, True]


def test_main_restarts_when_a_merge_undoes_finally():
    """The wait of AfterProcessingTime starts again in the merged window; the row before it is in a pane already."""
    trigger = AfterEach(OrFinally(AfterCount(2), AfterProcessingTime(5)), Never())
    pipeline = SESSIONS.trigger(trigger, allow_data_loss=True)
    script = TestStream().add([{"ts": 1}]).advance_processing_time_to(5)
    assert [pane.values["n"] for pane in pipeline.run(script)] == [1]
    script = script.add([{"ts": 5}])
    assert [pane.values["n"] for pane in pipeline.run(script)] == [1]
    assert [pane.values["n"] for pane in pipeline.run(script.add([{"ts": 8}]))] == [1, 2]


def test_a_session_whose_value_has_fired_does_not_fire_again_however_it_grows():
    trigger = AfterEach(AfterValue("n", at_least=2), Never())
    pipeline = SESSIONS.accumulating().trigger(trigger).key_by("team")
    script = TestStream()
    for second in (1, 5, 30, 12, 20, 25):  # the last one joins two sessions, of which one has fired
        script = script.add([{"ts": second, "team": "red"}])
    assert [(pane.values["n"], pane.start.second) for pane in pipeline.run(script)] == [(2, 1)]
    last = pipeline.run(script.advance_watermark_to(99))[-1]
    assert (last.values["n"], last.is_last, last.start.second) == (6, True, 1)


@pytest.mark.parametrize(
    ("trigger", "fires"),
    [
        (AfterValue("most", at_least=2.5), [3]),
        (AfterValue("most", at_most=1), [1]),
        (AfterValue("most", at_most=0), []),
        (AfterValue("total", at_least=Decimal("3.5")), [3]),
    ],
)
def test_a_value_is_that_of_a_pane_now(trigger, fires):
    pipeline = SESSIONS.accumulating().trigger(trigger, allow_data_loss=True)
    pipeline = pipeline.accumulate(most=Max("x"), total=Sum("x"))
    script = TestStream().add([{"ts": 1, "x": None}]).add([{"ts": 1, "x": 1}]).add([{"ts": 1, "x": 3}])
    assert [pane.values["most"] for pane in pipeline.run(script)] == fires


def test_a_sequence_is_not_finished_by_a_merge_before_its_last_part_has_fired():
    trigger = AfterAll(AfterEach(AfterCount(4), AfterCount(1)), Always())
    script = TestStream().add([{"ts": 1}]).add([{"ts": 5}]).add([{"ts": 9}])
    pipeline = SESSIONS.trigger(trigger, allow_data_loss=True)
    assert list(pipeline.run(script)) == []
    assert [pane.values["n"] for pane in pipeline.run(script.advance_watermark_to_infinity())] == [3]


def test_a_finished_main_stays_finished_in_a_merge():
    trigger = AfterEach(OrFinally(AfterCount(2), Never()), Never())
    script = TestStream().add([{"ts": 1}, {"ts": 2}]).add([{"ts": 5}, {"ts": 6}]).add([{"ts": 7}])
    panes = SESSIONS.trigger(trigger, allow_data_loss=True).run(script)
    assert [pane.values["n"] for pane in panes] == [2]


@attrs.frozen
class Bundles(Trigger):
    """A user-defined trigger that fires after this many bundles, summed over merged windows."""

    n: int

    def create(self):
        return 0

    def on_rows(self, state, count, context):
        return state + 1

    def should_fire(self, state, context):
        return state >= self.n

    def on_merge(self, states, context):
        assert states  # a window that is new is none that was merged
        return sum(states)

    def may_lose_rows(self, allowed_lateness_us):
        return False


def test_a_custom_trigger_continues_from_its_merge():
    script = TestStream().add([{"ts": 1}]).add([{"ts": 15}]).add([{"ts": 8}, {"ts": 100}])
    assert [pane.values["n"] for pane in SESSIONS.trigger(Bundles(4)).run(script)] == []
    assert [pane.values["n"] for pane in SESSIONS.trigger(Bundles(3)).run(script)] == [3]


@attrs.frozen
class AtEnd(Trigger):
    """A user's trigger that fires whenever it is asked at or past the window's end."""

    def should_fire(self, state, context):
        return context.at_end

    def may_lose_rows(self, allowed_lateness_us):
        return False


class WaitingForEnd(AtEnd):
    waits_for_end = True


@pytest.mark.parametrize(("trigger", "at_end"), [(AtEnd(), []), (WaitingForEnd(), [1])])
def test_a_custom_trigger_is_evaluated_at_the_end_only_if_it_waits_for_it(trigger, at_end):
    pipeline = SESSIONS.window(bm.FixedWindows(10)).trigger(trigger).allowed_lateness(100)
    script = TestStream().add([{"ts": 1}]).advance_watermark_to(10)
    assert [pane.values["n"] for pane in pipeline.run(script)] == at_end
    panes = pipeline.run(script.add([{"ts": 2}]))
    assert sum(pane.values["n"] for pane in panes) == 2
