"""A pane, as tests read it."""

import re

import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream

COUNTS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).accumulate(n=Count()).with_dropped()
SCRIPT = TestStream().add([{"ts": 12, "team": "red"}, {"ts": None, "team": "red"}]).advance_watermark_to_infinity()


def test_a_pane_of_a_window_that_ends_has_both_bounds():
    *_, pane = COUNTS.window(bm.FixedWindows(10)).run(SCRIPT)
    assert (pane.start, pane.end) == pane.window
    assert (pane.start.second, pane.end.second) == (10, 20)


@pytest.mark.parametrize("bound", ["start", "end"])
def test_a_missing_bound_raises(bound):
    dropped, pane = COUNTS.window(bm.GlobalWindow()).run(SCRIPT)
    for one, why in ((dropped, "its row is in no window"), (pane, "its window is the global window")):
        with pytest.raises(bm.PipelineError, match=re.escape(f"pane.{bound}: {why}, so it has none; pane.window")):
            getattr(one, bound)


def test_keys_may_come_as_a_list():
    by_team = COUNTS.key_by("team", "ts")
    assert COUNTS.key_by(["team", "ts"]) == by_team == COUNTS.key_by(("team", "ts"))
