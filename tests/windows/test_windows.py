"""Window options assign columns as they assign single rows; invalid windowings are refused."""

import numpy as np
import pytest

import beamish as bm
from beamish.errors import OptionError
from beamish.windows import Windowings
from beamish.windows.option import END_OF_TIME_US

SECOND = 1_000_000
OPTIONS = [
    (bm.FixedWindows(10), [(20, 30)]),
    (bm.FixedWindows(10, 3), [(23, 33)]),
    (bm.FixedWindows(10, -4), [(16, 26)]),
    (bm.SlidingWindows(10, 5), [(25, 35), (20, 30)]),
    (bm.SlidingWindows(10, 4, 1), [(25, 35), (21, 31), (17, 27)]),
    (bm.SlidingWindows(10, 40, 20), [(20, 30)]),
    (bm.SlidingWindows(5, 40), []),
    (bm.CumulativeWindows(20, 5), [(20, 30), (20, 35), (20, 40)]),
    (bm.CumulativeWindows(20, 5, 7), [(7, 27)]),
    (bm.CumulativeWindows(10, 10, -4), [(16, 26)]),
    (bm.Sessions(10), [(25, 35)]),
    (bm.CalendarWindows(days=1), [(0, 86_400)]),
]


@pytest.mark.parametrize(("option", "windows"), OPTIONS, ids=lambda part: repr(part)[:50])
def test_a_row_is_in_the_same_windows_by_itself_and_in_a_column(option, windows):
    windows = sorted((start * SECOND, end * SECOND) for start, end in windows)
    row, start, end = option.assign_columns(np.array([25 * SECOND, 25 * SECOND]))
    assert sorted(zip(row.tolist(), start.tolist(), end.tolist(), strict=True)) == [
        (n, *window) for n in (0, 1) for window in windows
    ]
    assert sorted(option.assign(25 * SECOND)) == windows


@pytest.mark.parametrize("option", [option for option, _ in OPTIONS], ids=repr)
@pytest.mark.parametrize("time_us", [0, 5 * SECOND, 5 * SECOND - 1, 30 * SECOND, -1, -7 * SECOND])
def test_bounds_belong_to_the_window_that_begins_with_them(option, time_us):
    _, start, end = option.assign_columns(np.array([time_us]))
    assert sorted(option.assign(time_us)) == sorted(zip(start.tolist(), end.tolist(), strict=True))
    assert all(first <= time_us < last for first, last in option.assign(time_us))


def test_the_global_window_is_all_of_time():
    assert list(bm.GlobalWindow().assign(5)) == [(0, END_OF_TIME_US)]


def test_windowings_are_window_options_by_name():
    both = {"ten": bm.FixedWindows(10), "visits": bm.Sessions(10)}
    assert Windowings(both).merging
    assert not Windowings({"ten": bm.FixedWindows(10)}).merging
    assert Windowings(both) == Windowings(dict(reversed(both.items())))
    assert hash(Windowings(both)) == hash(Windowings(dict(reversed(both.items()))))
    assert repr(Windowings(both)).startswith("Windowings({'ten': FixedWindows(")


@pytest.mark.parametrize(
    "options",
    [
        {},
        None,
        [bm.FixedWindows(10)],
        {"ten": 10},
        {"": bm.FixedWindows(10)},
        {10: bm.FixedWindows(10)},
        {"both": Windowings({"ten": bm.FixedWindows(10)})},
    ],
)
def test_invalid_windowings_are_rejected(options):
    with pytest.raises(OptionError, match=r"^Windowings"):
        Windowings(options)
