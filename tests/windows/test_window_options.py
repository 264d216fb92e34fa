"""Descriptions of window options."""

import pytest

import beamish as bm
from beamish.windows import Windowings
from beamish.windows.time_windows import InheritedWindows
from tests.own.windows import OwnGap, PlainWindows, UntilMinute

ALL = "one global window; it never ends while the stream runs"


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (bm.FixedWindows("2 minutes"), "fixed, 2 minutes long"),
        (bm.FixedWindows("2 minutes", "5 seconds"), "fixed, 2 minutes long, shifted by 5 seconds"),
        (bm.SlidingWindows(10, 5), "sliding, 10 seconds long, one every 5 seconds; a row is in each that contains it"),
        (bm.SlidingWindows(5, 10), "sliding, 5 seconds long, one every 10 seconds; sampled: rows between them are in none"),
        (bm.Sessions(10), "sessions: rows of a key less than 10 seconds apart; they grow and merge as rows arrive"),
        (
            bm.Sessions(10, late_rows="session"),
            "sessions: rows of a key less than 10 seconds apart; they grow and merge as rows arrive; a row expires with the session that it joins",
        ),
        (bm.GlobalWindow(), ALL),
        (
            bm.CumulativeWindows(10, 5),
            "cumulative, one every 10 seconds, which grows by 5 seconds up to 10 seconds; a row is in each that contains it",
        ),
        (bm.CalendarWindows(weeks=1), "calendar, 1 week long by the clocks of UTC, counted from 1970-01-05"),
        (
            bm.CalendarWindows(months=3, timezone="Europe/Paris", starting="2024-02-29"),
            "calendar, 3 months long by the clocks of Europe/Paris, counted from 2024-02-29",
        ),
        (InheritedWindows(bm.FixedWindows(10)), "inherited from the panes: fixed, 10 seconds long"),
        (
            Windowings({"ten": bm.FixedWindows(10), "all": bm.GlobalWindow()}),
            f"2 windowings in one pass, named in the column windowing: ten: fixed, 10 seconds long; all: {ALL}",
        ),
        (UntilMinute(), "UntilMinute(), which do not merge"),
        (PlainWindows(10), "PlainWindows(size=10000000), which do not merge"),
        (OwnGap(), "OwnGap(), which merge"),
    ],
    ids=lambda part: repr(part)[:40],
)  # fmt: skip
def test_window_options_describe_themselves(option, words):
    assert option.describe() == words


def test_the_global_window_is_all_of_time_also_where_it_is_inherited():
    assert bm.GlobalWindow().is_all_of_time
    assert InheritedWindows(InheritedWindows(bm.GlobalWindow())).is_all_of_time
    for option in (bm.FixedWindows(1), InheritedWindows(bm.FixedWindows(1)), Windowings({"all": bm.GlobalWindow()})):
        assert not option.is_all_of_time
