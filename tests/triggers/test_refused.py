"""Triggers: wrong values are refused where they are written; what a trigger must not return, when it does."""

from typing import Any

import attrs
import pytest

import beamish as bm
from beamish.instants import EPOCH
from beamish.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
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


# The call, and fragments of the message: value, rule, fix.
AT_ONCE = [
    ("count 0", lambda: AfterCount(0), ["AfterCount(n=0)", "at least 1", "Always()"]),
    ("count True", lambda: AfterCount(True), ["n=True", "whole number"]),  # noqa: FBT003
    ("count 1.5", lambda: AfterCount(1.5), ["n=1.5", "whole number"]),
    ("value of nothing", lambda: AfterValue("", at_least=1), ["AfterValue(name='')", "name of an accumulation"]),
    ("value without a bound", lambda: AfterValue("n"), ["one of at_least and at_most", "AfterValue('n', at_least=5)"]),
    ("value with two bounds", lambda: AfterValue("n", at_least=1, at_most=2), ["one of at_least and at_most"]),
    ("value as text", lambda: AfterValue("n", at_least="5"), ["AfterValue(at_least='5')", "a number"]),
    ("value as nan", lambda: AfterValue("n", at_most=float("nan")), ["AfterValue(at_most=nan)", "a number"]),
    ("negative delay", lambda: AfterProcessingTime("-1 second"), ["AfterProcessingTime(delay)", "not be negative"]),
    ("wait since what", lambda: AfterProcessingTime(1, since="middle"), ["since='middle'", "'first' or 'last'"]),
    ("aligned to nothing", lambda: AfterProcessingTime(aligned_to=0), ["AfterProcessingTime(aligned_to)", "above 0"]),
    ("offset alone", lambda: AfterProcessingTime(offset="1 second"), ["offset='1 second'", "aligned_to='1 minute'"]),
    ("early is text", lambda: AfterWatermark(early="nonsense"), ["AfterWatermark(early)='nonsense'", "trigger"]),
    ("late is a class", lambda: AfterWatermark(late=Always), ["AfterWatermark(late)=Always", "Always(...)"]),
    (
        "early at the end",
        lambda: AfterWatermark(early=AfterWatermark()),
        ["AfterWatermark(early=AfterWatermark(early=None, late=None))", "cannot wait for the end"],
    ),
    (
        "late at the end",
        lambda: AfterWatermark(late=Default()),
        ["AfterWatermark(late=Default())", "use a trigger such"],
    ),
    (
        "early, repeated",
        lambda: AfterWatermark(early=Repeatedly(AfterWatermark())),
        ["early=Repeatedly(", "panes before"],
    ),
    (
        "late, nested",
        lambda: AfterWatermark(late=AfterWatermark(late=Always())),
        ["late=AfterWatermark(", "panes after"],
    ),
    ("AfterAny()", AfterAny, ["AfterAny()", "at least one"]),
    ("AfterAll()", AfterAll, ["AfterAll()", "at least one"]),
    ("AfterEach()", AfterEach, ["AfterEach()", "at least one"]),
    ("AfterAny([..])", lambda: AfterAny([Always()]), ["one by one"]),
    ("AfterAny(3)", lambda: AfterAny(Always(), 3), ["AfterAny(#2)=3"]),
    ("Repeatedly(3)", lambda: Repeatedly(3), ["Repeatedly(trigger)=3"]),
    ("OrFinally main", lambda: OrFinally(None, Never()), ["OrFinally(main)=None"]),
    ("OrFinally until", lambda: OrFinally(Always(), "x"), ["OrFinally(finally_)='x'"]),
    ("trigger text", lambda: START.trigger("always"), ["'always'", "AfterWatermark()"]),
    ("trigger of an object", lambda: START.trigger(AfterAny(Seen())), ["trigger(trigger)=AfterAny(Seen(", "attrs"]),
    ("trigger that never says", lambda: START.trigger(NoShouldFire()), ["NoShouldFire()", "should_fire(self, state,"]),
    (
        "a part that never says",
        lambda: Repeatedly(NoShouldFire()),
        ["Repeatedly(trigger)=NoShouldFire()", "should_fire"],
    ),
]


@cases(AT_ONCE, "call", "fragments")
def test_an_invalid_option_is_rejected_at_its_call(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)


@attrs.frozen
class FiresWrong(Trigger):
    gives: object = 0

    def should_fire(self, state, context):
        return True

    def on_fire(self, state, context):
        return self.gives


@pytest.mark.parametrize("gives", [0, (False,), (0, 1), {"a": 1, "b": 2}], ids=repr)
def test_a_trigger_whose_on_fire_returns_no_pair_is_reported(gives):
    with pytest.raises(bm.UserFunctionError) as caught:
        PLAIN.trigger(FiresWrong(gives), allow_data_loss=True).discarding().run(ONE_ROW)
    for fragment in (
        f"on_fire returned {gives!r}",
        "must be a pair",
        "whether the trigger is finished",
        "{'team': 'red'}",
    ):
        assert fragment in str(caught.value)


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


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (Wrong(fires=None), ["should_fire returned None", "True or False", "{'team': 'red'}"]),
        (Wrong(fires="yes"), ["should_fire returned 'yes'", "True or False"]),
        (Wrong(wakes=5.5), ["wakes_at returned 5.5", "None, or whole microseconds"]),
        (Wrong(wakes=EPOCH), ["wakes_at returned datetime", "whole microseconds since the epoch"]),
        (Wrong(state=ValueError), ["a custom trigger", "a builtins.type", "checkpoint", "None, bool, int"]),
    ],
    ids=str,
)
def test_a_trigger_with_an_invalid_result_is_reported(trigger, words):
    refused(bm.UserFunctionError, lambda: PLAIN.trigger(trigger, allow_data_loss=True).discarding().run(ONE_ROW), words)
