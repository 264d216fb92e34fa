"""explain() on late rows, on panes of merged-away sessions, and on rows of finished windows."""

import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import AfterCount, AfterWatermark, Repeatedly

COUNTS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").accumulate(n=Count())
SESSIONS, TENS = (COUNTS.window(window).accumulating() for window in (bm.Sessions(10), bm.FixedWindows(10)))
EARLY = AfterWatermark(early=AfterCount(1))
STAY = "panes of merged-away windows are not retracted"
FINISHED = "rows of windows whose trigger has finished"


def explained(pipeline):
    return " ".join(pipeline.explain().split())


@pytest.mark.parametrize(
    ("pipeline", "stay"),
    [
        (SESSIONS.trigger(EARLY), True),
        (SESSIONS.allowed_lateness(5), True),
        (SESSIONS, False),
        (SESSIONS.trigger(EARLY).accumulating_and_retracting(), False),
        (SESSIONS.trigger(EARLY).discarding(), False),
        (TENS.trigger(EARLY), False),
    ],
)
def test_accumulating_sessions_that_fire_twice_leave_panes(pipeline, stay):
    assert (STAY in explained(pipeline)) is stay


@pytest.mark.parametrize(
    ("windows", "lateness", "fires"),
    [
        (TENS, {"lateness": 0}, "when the watermark reaches its end late"),
        (TENS, {"lateness": 5}, "when the watermark reaches its end, then with every bundle of late rows late"),
        (TENS.window(bm.CountWindows(3)), {"rows": 0}, "when it is full late"),
        (TENS.window(bm.CountWindows(3)), {"rows": 5}, "when it is full, then with every bundle of late rows late"),
    ],
)
def test_late_rows_fire_only_where_they_are_accepted(windows, lateness, fires):
    assert f"a window fires {fires}" in explained(windows.allowed_lateness(**lateness))


@pytest.mark.parametrize(
    ("trigger", "lateness", "may_finish"),
    [
        (AfterWatermark(), 0, False),
        (AfterWatermark(), 5, True),
        (AfterWatermark(late=AfterCount(1)), 5, False),
        (AfterCount(3), 0, True),
        (Repeatedly(AfterCount(3)), 5, False),
    ],
)
def test_rows_of_finished_windows_are_listed_only_if_a_trigger_finishes_before_expiry(trigger, lateness, may_finish):
    pipeline = TENS.trigger(trigger, allow_data_loss=True).allowed_lateness(lateness)
    assert (FINISHED in explained(pipeline)) is may_finish
