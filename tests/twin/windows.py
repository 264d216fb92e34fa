"""Assignment of rows to windows, and merging (rules/windows.md#windows, #calendar-windows)."""

from __future__ import annotations

import calendar
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import beamish as bm
from beamish.instants import EARLIEST_US, LATEST_US
from beamish.windows.option import END_OF_TIME_US

Bounds = tuple[int, int]

US = timedelta(microseconds=1)
DAY_US = timedelta(days=1) // US
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def interval_of(within: bm.Within) -> tuple[int, int]:
    """From when to when after a row its matches are, both included."""
    since, until = -within.before.us, within.after.us
    return since + (within.inclusive in ("right", "neither")), until - (within.inclusive in ("left", "neither"))


def interval_windows(within: bm.Within, first_us: int, last_us: int) -> list[Bounds]:
    """The windows of an interval join that rows of the other input between two times are in."""
    period = within.before.us + within.after.us or 1_000_000
    ends = ((k, (k + 1) * period + max(within.after.us, 0)) for k in range(first_us // period, last_us // period + 1))
    return [(k * period, min(end, END_OF_TIME_US)) for k, end in ends]


def assign(option: bm.WindowOption, time_us: int, row: Mapping[str, Any], input_: str | None = None) -> list[Bounds]:
    """The windows of a row of an input of a merge."""
    match option:
        case bm.Within():
            # rules/stages.md#within: the row's own window; for a row of ``of`` those of all its possible matches.
            since, until = interval_of(option)
            first, last = (time_us - until, time_us - since) if input_ == option.of else (time_us, time_us)
            return interval_windows(option, first, last)
        case bm.CountWindows():
            # By numbers, like sliding windows of times (rules/windows.md#windows-of-rows).
            period = option.period or option.size
            start = (time_us - option.offset) // period * period + option.offset
            windows = []
            while time_us < start + option.size:
                windows.append((start, start + option.size))
                start -= period
            return windows
        case bm.CountSessions():
            return [(time_us, time_us + option.others + 2)]
        case bm.FixedWindows():
            start = (time_us - option.offset.us) // option.size.us * option.size.us + option.offset.us
            return [(start, start + option.size.us)]
        case bm.SlidingWindows():
            # Every window that contains the timestamp; a period above the size samples.
            start = (time_us - option.offset.us) // option.period.us * option.period.us + option.offset.us
            windows = []
            while time_us < start + option.size.us:
                windows.append((start, start + option.size.us))
                start -= option.period.us
            return windows
        case bm.CumulativeWindows():
            # The parts that begin with the fixed window, end after whole steps, and contain the timestamp.
            start = (time_us - option.offset.us) // option.size.us * option.size.us + option.offset.us
            ends = range(start + option.step.us, start + option.size.us + 1, option.step.us)
            return [(start, end) for end in ends if time_us < end]
        case bm.Sessions():
            return [(time_us, time_us + option.gap.us)]
        case bm.GlobalWindow():
            return [(0, END_OF_TIME_US)]
        case bm.CalendarWindows():
            return [_calendar_window(option, time_us)]
        case _:
            return list(option.assign(time_us, *(row.get(column) for column in option.columns)))


def groups(option: bm.WindowOption, windows: Sequence[Bounds]) -> list[tuple[list[Bounds], Bounds]]:
    """Distinct, sorted windows of one key as (members, merged window); a single one is a group too."""
    if not isinstance(option, (bm.Sessions, bm.CountSessions)):
        found = [(list(members), result) for members, result in option.merge(windows)]
        grouped = {window for members, _ in found for window in members}
        return found + [([window], window) for window in windows if window not in grouped]
    found = []
    for window in windows:
        # Touching is not overlapping.
        if found and window[0] < found[-1][1][1]:
            members, (start, end) = found.pop()
            found.append(([*members, window], (start, max(end, window[1]))))
        else:
            found.append(([window], window))
    return found


def _calendar_window(option: bm.CalendarWindows, time_us: int) -> Bounds:
    k = 0
    step = 1
    while _boundary_us(option, k) > time_us:  # gallop back, then walk on
        k -= step
        step *= 2
    while _boundary_us(option, k + 1) <= time_us:
        step = 1
        while _boundary_us(option, k + 2 * step) <= time_us:
            step *= 2
        k += step
    return int(max(_boundary_us(option, k), EARLIEST_US)), int(min(_boundary_us(option, k + 1), LATEST_US + 1))


@cache
def _boundary_us(option: bm.CalendarWindows, k: int) -> float:
    """Boundary k is the local midnight of starting + k * n units (rules/windows.md#calendar-windows); infinite without a date."""
    try:
        return _local_boundary_us(option, k)
    except (OverflowError, ValueError):  # Python has no such date
        return math.copysign(math.inf, k)


def _local_boundary_us(option: bm.CalendarWindows, k: int) -> int:
    starting = option.starting or (date(1970, 1, 5) if option.weeks else date(1970, 1, 1))
    assert isinstance(starting, date)
    if option.days or option.weeks:
        return _midnight_us(starting + timedelta(days=k * (option.days or 7 * (option.weeks or 0))), option.timezone)
    months = starting.year * 12 + starting.month - 1 + k * (option.months or 12 * (option.years or 0))
    year, month = months // 12, months % 12 + 1
    last_day = calendar.monthrange(year, month)[1]  # 31 January + 1 month = the last of February
    return _midnight_us(date(year, month, min(starting.day, last_day)), option.timezone)


@cache
def _midnight_us(day: date, timezone: str) -> int:
    """The first instant at which a time zone's clocks show midnight or later."""
    zone = ZoneInfo(timezone)
    midnight = (day - EPOCH.date()) // US

    def shows(instant: int) -> bool:
        # Near the first and last dates clocks are constant.
        known = EPOCH + min(max(instant, EARLIEST_US + DAY_US), LATEST_US - DAY_US) * US
        return instant + (known.astimezone(zone).utcoffset() or timedelta()) // US >= midnight

    tick = timedelta(minutes=15) // US
    instant = midnight - timedelta(hours=27) // US
    while not shows(instant):
        instant += tick
    before = instant - tick
    while instant - before > 1:
        middle = before + (instant - before) // 2
        before, instant = (before, middle) if shows(middle) else (middle, instant)
    return instant
