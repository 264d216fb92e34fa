"""Triggers: wrong values are refused where they are written; what a trigger must not return, when it does."""

from typing import Any

import attrs

from beamish.instants import EPOCH
from beamish.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterEventTime,
    AfterProcessingTime,
    AfterValue,
    AfterWatermark,
    Always,
    Default,
    Never,
    OrFinally,
    Repeatedly,
    Trigger,
)
from tests.refused import ONE_ROW, PLAIN, START, cases, refused


class NoShouldFire(Trigger):
    pass


class Seen(Trigger):
    def __init__(self):
        self.held = object()

    def should_fire(self, state, context):
        return True


AT_ONCE = {
    "count 0": lambda: AfterCount(0),
    "event time before the row": lambda: AfterEventTime("-1 second"),
    "event time, offset alone": lambda: AfterEventTime(offset=1),
    "count True": lambda: AfterCount(True),  # noqa: FBT003
    "count 1.5": lambda: AfterCount(1.5),
    "value of nothing": lambda: AfterValue("", at_least=1),
    "value without a bound": lambda: AfterValue("n"),
    "value with two bounds": lambda: AfterValue("n", at_least=1, at_most=2),
    "value as text": lambda: AfterValue("n", at_least="5"),
    "value as nan": lambda: AfterValue("n", at_most=float("nan")),
    "negative delay": lambda: AfterProcessingTime("-1 second"),
    "wait since what": lambda: AfterProcessingTime(1, since="middle"),
    "aligned to nothing": lambda: AfterProcessingTime(aligned_to=0),
    "offset alone": lambda: AfterProcessingTime(offset="1 second"),
    "early is text": lambda: AfterWatermark(early="nonsense"),
    "late is a class": lambda: AfterWatermark(late=Always),
    "early at the end": lambda: AfterWatermark(early=AfterWatermark()),
    "late at the end": lambda: AfterWatermark(late=Default()),
    "early, repeated": lambda: AfterWatermark(early=Repeatedly(AfterWatermark())),
    "late, nested": lambda: AfterWatermark(late=AfterWatermark(late=Always())),
    "AfterAny()": AfterAny,
    "AfterAll()": AfterAll,
    "AfterEach()": AfterEach,
    "AfterAny([..])": lambda: AfterAny([Always()]),
    "AfterAny(3)": lambda: AfterAny(Always(), 3),
    "Repeatedly(3)": lambda: Repeatedly(3),
    "OrFinally main": lambda: OrFinally(None, Never()),
    "OrFinally until": lambda: OrFinally(Always(), "x"),
    "trigger text": lambda: START.trigger("always"),
    "trigger of an object": lambda: START.trigger(AfterAny(Seen())),
    "trigger that never says": lambda: START.trigger(NoShouldFire()),
    "a part that never says": lambda: Repeatedly(NoShouldFire()),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


@attrs.frozen
class FiresWrong(Trigger):
    gives: object = 0

    def should_fire(self, state, context):
        return True

    def on_fire(self, state, context):
        return self.gives


@attrs.frozen
class Wrong(Trigger):
    state: Any = 0
    fires: Any = False
    wakes: Any = None

    def create(self):
        return self.state

    def on_rows(self, state, count, context):
        return self.state

    def should_fire(self, state, context):
        return self.fires

    def wakes_at(self, state):
        return self.wakes


WRONG = {
    "should_fire gives None": Wrong(fires=None),
    "should_fire gives text": Wrong(fires="yes"),
    "wakes_at gives 5.5": Wrong(wakes=5.5),
    "wakes_at gives a datetime": Wrong(wakes=EPOCH),
    "a state that is a class": Wrong(state=ValueError),
    **{f"on_fire gives {gives!r}": FiresWrong(gives) for gives in (0, (False,), (0, 1), {"a": 1, "b": 2})},
}


@cases(WRONG)
def test_a_trigger_with_an_invalid_result_is_reported(name):
    refused(__file__, name, lambda: PLAIN.trigger(WRONG[name], allow_data_loss=True).discarding().run(ONE_ROW))
