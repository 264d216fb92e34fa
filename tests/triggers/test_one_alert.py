"""Alerts, once and otherwise, as the table of docs/triggers.md#one-alert says."""

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream
from beamish.triggers import AfterEach, AfterProcessingTime, AfterValue, Default, Never, Repeatedly

NOT_LAST, AT_LEAST_3 = ~pc.field("pane", "is_last"), pc.field("clicks") >= 3
THREE, FIVE = AfterValue("clicks", at_least=3), AfterValue("clicks", at_least=5)
ONCE = AfterEach(THREE, Never())
VISITS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("30 seconds"))
    .key_by("user")
    .window(bm.Sessions("10 seconds"))
    .accumulating()
    .accumulate(clicks=Count())
)
GROWS, MERGES, STAYS = (0, 5, 9, 14, 18, 60), (0, 12, 24, 6), (0, 1)


@pytest.mark.parametrize(
    ("trigger", "having", "grows", "merges"),
    [
        (ONCE, NOT_LAST, [3], [3]),
        (ONCE, AT_LEAST_3, [3, 5], [3, 3]),
        (AfterEach(THREE, FIVE, Never()), NOT_LAST, [3, 5], [3]),
        (Default(), AT_LEAST_3, [5], [3]),
        (Repeatedly(THREE), AT_LEAST_3, [3, 4, 5, 5], [3, 3]),
    ],
)
def test_an_alert_comes_as_often_as_it_is_wanted_however_its_session_grows(trigger, having, grows, merges):
    alerts = VISITS.trigger(trigger).having(having)

    def counts(seconds):
        script = TestStream()
        for second in seconds:
            script = script.add([{"ts": second, "user": "ann"}])
        return [pane.values["clicks"] for pane in alerts.run(script.advance_watermark_to_infinity())]

    assert (counts(GROWS), counts(MERGES), counts(STAYS)) == (grows, merges, [])


def test_silence_of_a_key_is_reported_once_each_time():
    by_time = VISITS.window(bm.Sessions("5 minutes"))
    by_clock = (
        VISITS.window(bm.GlobalWindow())
        .trigger(Repeatedly(AfterProcessingTime("5 minutes", since="last")))
        .discarding()
    )
    script = TestStream()
    for second, user in ((0, "ann"), (0, "bob"), (200, "ann"), (400, "bob"), (450, "ann"), (900, "cid")):
        script = script.step([{"ts": second, "user": user}], watermark=second - 30, clock=second)
    for pipeline in (by_time, by_clock):
        told = [
            (event.clock_us // 1_000_000, pane.key["user"], pane.values["clicks"])
            for event, panes in script.trace(pipeline)
            for pane in panes
        ]
        assert sorted(told) == [(400, "bob", 1), (900, "ann", 3), (900, "bob", 1)]
