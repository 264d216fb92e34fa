"""Durations: what a user writes ("10 minutes", a timedelta, seconds) and whole microseconds inside."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from fractions import Fraction
from typing import Any

from beamish.errors import OptionError

_UNITS_US = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
_LONGEST_US = 2**62


class Duration(int):
    """Whole microseconds that print as text ('2 minutes'); an int in every other way."""

    def __repr__(self) -> str:
        return repr(str(self))

    def __str__(self) -> str:
        for unit, unit_us in _UNITS_US.items():
            if unit != "week" and self % unit_us == 0 and (self != 0 or unit == "second"):
                amount = int(self) // unit_us
                return f"{amount} {unit}{'' if amount == 1 else 's'}"
        raise AssertionError("every whole number is a multiple of one microsecond")

    def __reduce__(self) -> tuple[type[Duration], tuple[int]]:
        return Duration, (int(self),)


def duration(where: str, value: Any) -> Duration:
    """Read a duration given as text, timedelta or seconds.

    Args:
        where: what is being read, for the message, such as ``FixedWindows(size)``.
        value: ``"10 minutes"`` (weeks down to microseconds, terms may be added up: ``"1 hour 30 minutes"``),
            a timedelta, or a number of seconds. Rounded to the microsecond.

    Raises:
        OptionError: it is none of these, or a month or year, which have no fixed length.
    """
    if isinstance(value, Duration):
        return value
    if isinstance(value, timedelta):
        return Duration(value // timedelta(microseconds=1))
    if isinstance(value, str):
        return Duration(_parse(where, value))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise OptionError(
            f"{where}={value!r}: a duration is text such as '10 minutes', a timedelta, or a number of seconds"
        )
    us = round(Fraction(value) * 1_000_000)
    if abs(us) > _LONGEST_US:
        raise OptionError(f"{where}={value!r}: longer than 146,000 years; give seconds, not micro- or milliseconds")
    return Duration(us)


def _parse(where: str, text: str) -> int:
    total, at = Fraction(0), 0
    while at < len(text):
        term = _TERM.match(text, at)
        if term is None:
            break
        unit = term[2].lower().removesuffix("s")
        if unit in ("month", "year", "quarter"):
            raise OptionError(
                f"{where}={text!r}: a {unit} has no fixed length; for calendar periods use CalendarWindows({unit}s=...)"
            )
        if unit not in _UNITS_US:
            raise OptionError(
                f"{where}={text!r}: unknown unit {term[2]!r}; use weeks, days, hours, minutes, seconds, "
                "milliseconds or microseconds"
            )
        total += Fraction(term[1]) * _UNITS_US[unit]
        at = term.end()
    if at < len(text) or not text.strip():
        raise OptionError(f"{where}={text!r}: not a duration; write it as '10 minutes' or '1 hour 30 minutes'")
    if abs(total) > _LONGEST_US:
        raise OptionError(f"{where}={text!r}: longer than 146,000 years")
    return round(total)


def positive(where: str, value: Any) -> Duration:
    """Read a duration above 0, as ``duration`` does.

    Raises:
        OptionError: it is none, or not above 0.
    """
    result = duration(where, value)
    if result <= 0:
        raise OptionError(f"{where}={value!r}: must be above 0")
    return result


def not_negative(where: str, value: Any) -> Duration:
    """Read a duration of at least 0, as ``duration`` does.

    Raises:
        OptionError: it is none, or negative.
    """
    result = duration(where, value)
    if result < 0:
        raise OptionError(f"{where}={value!r}: must not be negative")
    return result
