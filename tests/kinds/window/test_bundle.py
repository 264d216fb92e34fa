"""Rows of a bundle of which some are dropped: each value goes to the window of its own row."""

import pytest

import beamish as bm
from beamish.accumulations import Collect, Sum
from beamish.testing import TestStream

ROWS = (
    bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).with_dropped().accumulate(of=Collect("v"), sum=Sum("v"))
)


@pytest.mark.parametrize("window", [bm.FixedWindows(10), bm.SlidingWindows(10, 5), bm.Sessions(10)])
@pytest.mark.parametrize("late_first", [False, True])
def test_values_of_dropped_rows_are_in_no_pane(window, late_first):
    rows = [{"ts": 25, "v": 5}, {"ts": 1, "v": 100}]
    script = (
        TestStream().advance_watermark_to(20).add(rows[::-1] if late_first else rows).advance_watermark_to_infinity()
    )
    panes = [pane.values for pane in ROWS.window(window).run(script) if pane.kind is bm.PaneKind.PANE]
    assert panes == [{"of": [5], "sum": 5}] * (2 if isinstance(window, bm.SlidingWindows) else 1)
