"""Descriptions of triggers, and whether they may fire before the end of their window."""

import pytest
from hypothesis import given

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream
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
from tests.strategies.triggers import nested_triggers


class OfAUsersOwn(Trigger):
    def __repr__(self):
        return "OfAUsersOwn()"

    def should_fire(self, state, context):
        return True


MINUTE = AfterProcessingTime("1 minute")
MANY = AfterAny(AfterCount(100), MINUTE)
END = "when the watermark reaches its end"
FIRST_OF = "at the first of (after 100 rows; 1 minute on the clock after its first row)"


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (AfterCount(1), "after 1 row"),
        (AfterCount(2), "after 2 rows"),
        (MINUTE, "1 minute on the clock after its first row"),
        (Always(), "with every bundle of rows"),
        (Never(), "only when it expires"),
        (Default(), f"{END}, then with every bundle of late rows"),
        (AfterValue("n", at_least=5), "once n is at least 5"),
        (Repeatedly(AfterValue("n", at_most=2.5)), "with every bundle while n is at most 2.5"),
        (OfAUsersOwn(), "as defined by OfAUsersOwn()"),
        (AfterWatermark(), END),
        (AfterProcessingTime("1 minute", since="last"), "1 minute on the clock after its last row"),
        (AfterProcessingTime(aligned_to="1 hour"), "at the next full 1 hour on the clock with new rows"),
        (
            Repeatedly(AfterProcessingTime(10, since="last", aligned_to="1 hour", offset="5 minutes")),
            "at each full 1 hour and 5 minutes on the clock that is 10 seconds after the last new row",
        ),
        (AfterWatermark(early=AfterCount(2)), f"before its end every 2 rows, then for the last time {END}"),
        (AfterWatermark(late=AfterCount(1)), f"{END}, then every row"),
        (AfterWatermark(AfterCount(2), AfterCount(1)), f"before its end every 2 rows, then {END}, then every row"),
        (AfterWatermark(MINUTE), f"before its end 1 minute on the clock after each first new row, then for the last time {END}"),
        (AfterWatermark(MANY, Always()), f"before its end repeatedly {FIRST_OF}, then {END}, then with every bundle of rows"),
        (Repeatedly(AfterCount(1)), "every row"),
        (Repeatedly(MINUTE), "1 minute on the clock after each first new row"),
        (Repeatedly(Repeatedly(AfterCount(3))), "every 3 rows"),
        (Repeatedly(Always()), "with every bundle of rows"),
        (Repeatedly(Never()), "only when it expires"),
        (Repeatedly(Default()), f"{END}, then with every bundle of late rows"),
        (Repeatedly(AfterWatermark()), f"{END}, then with every bundle of rows"),
        (Repeatedly(OfAUsersOwn()), "repeatedly as defined by OfAUsersOwn()"),
        (Repeatedly(MANY), f"repeatedly {FIRST_OF}"),
        (MANY, FIRST_OF),
        (AfterAll(AfterCount(2), AfterWatermark()), f"at the last of (after 2 rows; {END})"),
        (AfterEach(AfterCount(2), MANY), f"in turn (after 2 rows; {FIRST_OF})"),
        (AfterAny(AfterCount(2)), "after 2 rows"),
        (OrFinally(Repeatedly(AfterCount(2)), AfterWatermark()), f"every 2 rows, until it fires for the last time {END}"),
        (Repeatedly(OrFinally(AfterCount(2), MINUTE)), "repeatedly (after 2 rows, until it fires for the last time 1 minute on the clock after its first row)"),
    ],
    ids=lambda part: repr(part)[:60],
)  # fmt: skip
def test_triggers_describe_themselves_to_follow_a_window_fires(trigger, words):
    assert trigger.describe() == words


WAIT_FOR_THE_END = [
    Default(),
    Never(),
    AfterWatermark(),
    AfterWatermark(early=Never(), late=AfterCount(1)),
    Repeatedly(AfterWatermark()),
    AfterAll(AfterCount(1), AfterWatermark()),
    AfterAny(Never(), Default()),
    AfterEach(AfterWatermark(), AfterCount(1)),
    OrFinally(Never(), AfterWatermark()),
]
MAY_FIRE_BEFORE = [
    Always(),
    AfterCount(1),
    AfterProcessingTime(1),
    AfterWatermark(early=AfterCount(1)),
    Repeatedly(AfterCount(1)),
    AfterAll(AfterCount(1), Always()),
    AfterAny(Never(), AfterCount(1)),
    AfterEach(AfterCount(1), AfterWatermark()),
    OrFinally(Never(), AfterCount(1)),
    OrFinally(AfterCount(1), Never()),
]


@pytest.mark.parametrize("trigger", [*WAIT_FOR_THE_END, *MAY_FIRE_BEFORE, OfAUsersOwn()], ids=repr)
def test_a_trigger_declares_whether_it_may_fire_before_the_end(trigger):
    assert trigger.can_fire_before_end() == (trigger not in WAIT_FOR_THE_END)


def panes_before_the_end(trigger):
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .window(bm.FixedWindows(100))
        .trigger(trigger, allow_data_loss=True)
        .discarding()
        .accumulate(n=Count())
    )
    script = TestStream()
    for second in range(1, 5):
        script = script.add([{"ts": second}]).advance_watermark_to(second).advance_processing_time_to(second)
    return pipeline.run(script)


@pytest.mark.parametrize("trigger", [*WAIT_FOR_THE_END, *MAY_FIRE_BEFORE], ids=repr)
def test_can_fire_before_end_is_correct(trigger):
    assert bool(panes_before_the_end(trigger)) == trigger.can_fire_before_end()


@given(nested_triggers())
def test_a_trigger_that_cannot_fire_before_the_end_does_not(trigger):
    assert trigger.can_fire_before_end() or not panes_before_the_end(trigger)
    assert trigger.describe()
