"""Ticks of a time axis, and their labels."""

from __future__ import annotations

import math

import attrs

from beamish.instants import instant

SECOND_US = 1_000_000
_DAY_US = 86_400 * SECOND_US
_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200]
_STEPS_US = [seconds * SECOND_US for seconds in _STEPS_S] + [days * _DAY_US for days in (1, 2, 7, 14, 30, 91, 365)]


@attrs.frozen
class Axis:
    """An axis of time.

    Attributes:
        ticks: positions, microseconds since the epoch.
        labels: their labels.
        day: the day, if it is a single one; empty: several days, or a script that counts from 0.
    """

    ticks: list[float]
    labels: list[str]
    day: str


def time_axis(first_us: float, last_us: float, most: int) -> Axis:
    """Up to this many ticks, at full seconds, minutes, hours or days."""
    span = max(last_us - first_us, 1)
    below_second = [10**power for power in range(6)]
    step = next((us for us in [*below_second, *_STEPS_US] if span / us <= most), 0)
    if not step:
        step = math.ceil(span / most / (365 * _DAY_US)) * 365 * _DAY_US
    ticks = [step * number for number in range(math.ceil(first_us / step), math.floor(last_us / step) + 1)]
    counts = first_us > -_DAY_US and last_us < _DAY_US  # a script that counts seconds from 0
    one_day = first_us // _DAY_US == (last_us - 1) // _DAY_US
    labels = [_counted(us, step) if counts else _written(us, step, with_day=not one_day) for us in ticks]
    day = "" if counts or not one_day else f"{instant(int(first_us)):%-d %b %Y}"
    return Axis([float(us) for us in ticks], labels, day)


def step_axis(first: float, last: float, most: int) -> Axis:
    """Up to this many ticks, at whole numbers."""
    step = max(1, math.ceil((last - first) / most))
    ticks = list(range(math.ceil(first / step) * step, math.floor(last) + 1, step))
    return Axis([float(number) for number in ticks], [str(number) for number in ticks], "")


def clock_label(us: float) -> str:
    """A time, to the second; as minutes and seconds in a script that counts from 0."""
    if abs(us) < _DAY_US:
        return _counted(int(us), SECOND_US)
    return f"{instant(int(us)):%H:%M:%S}"


def _counted(us: float, step: float) -> str:
    sign, seconds = "\N{MINUS SIGN}" if us < 0 else "", abs(us) / SECOND_US
    if step < SECOND_US:
        return f"{sign}{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02}:{rest:02}" if hours else f"{sign}{minutes}:{rest:02}"


def _written(us: float, step: float, *, with_day: bool) -> str:
    at = instant(int(us))
    if step >= _DAY_US:
        return f"{at:%-d %b}" if step < 300 * _DAY_US else f"{at:%b %Y}"
    whole = f"{at:%H:%M}" if step >= 60 * SECOND_US else f"{at:%H:%M:%S}"
    time = f"{at:%H:%M:%S.%f}".rstrip("0") if step < SECOND_US else whole
    return f"{time}\n{at:%-d %b}" if with_day else time
