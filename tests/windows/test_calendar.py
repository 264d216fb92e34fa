"""Midnights that do not exist (rules/windows.md#calendar-windows)."""

from datetime import UTC, datetime

import numpy as np
import pytest

import beamish as bm


@pytest.mark.parametrize(
    ("timezone", "day", "start"),
    [
        # At 23:30 of the evening before the clocks went to 00:30.
        ("America/Toronto", datetime(1919, 3, 31, 12, tzinfo=UTC), datetime(1919, 3, 31, 4, 30, tzinfo=UTC)),
        # At midnight they went to 01:00.
        ("America/Sao_Paulo", datetime(2018, 11, 4, 12, tzinfo=UTC), datetime(2018, 11, 4, 3, tzinfo=UTC)),
        ("Europe/Paris", datetime(2024, 3, 31, 12, tzinfo=UTC), datetime(2024, 3, 30, 23, tzinfo=UTC)),
    ],
)
def test_a_day_begins_with_the_first_instant_at_or_after_its_midnight(timezone, day, start):
    option = bm.CalendarWindows(days=1, timezone=timezone)
    at_us, start_us = (int(time.timestamp()) * 1_000_000 for time in (day, start))
    _, starts, ends = option.assign_columns(np.array([start_us - 1, start_us, at_us]))
    assert ends[0] == starts[1] == starts[2] == start_us
    assert list(option.assign(at_us)) == [(start_us, int(ends[2]))]


def test_calendar_windows_repr_is_their_call():
    assert repr(bm.CalendarWindows(days=2)).endswith(
        "days=2, weeks=None, months=None, years=None, timezone='UTC', starting=None)"
    )
    assert "starting='2024-01-31'" in repr(bm.CalendarWindows(months=1, starting="2024-01-31"))


@pytest.mark.parametrize(("unit", "days"), [("days", 3), ("weeks", 21), ("months", 84), ("years", 1095)])
def test_the_segment_period_is_about_a_window_long(unit, days):
    assert bm.CalendarWindows(**{unit: 3}).period_us == days * 86_400_000_000
