"""Durations: what a user writes ("10 minutes", a timedelta, seconds), a value of whole microseconds inside.

An option's field is read by one of the converters at the end, which name the class and the attribute in what they
refuse: ``size: Duration = attrs.field(converter=read_positive)`` says ``FixedWindows(size)=0: must be above 0``.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import attrs

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
_CALENDAR = {"month": (30, "months=..."), "quarter": (91, "months=3"), "year": (365, "years=...")}
"""Units without a fixed length: the days to suggest instead, and the argument of CalendarWindows."""
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
LONGEST_US = 2**62
"""Maximum duration of an option, so that a time plus a duration fits into 64 bits."""


@attrs.frozen(order=True, repr=False)
class Duration:
    """Whole microseconds that print as text ('2 minutes'). It is not a number; ``.us`` is.

    Durations can be added, subtracted and compared, multiplied by an integer, and divided by an integer (a duration) or by each
    other (an integer quotient).

    Args:
        us: microseconds.
    """

    us: int = attrs.field()

    @us.validator
    def _check(self, _: object, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise OptionError(f"Duration(us={value!r}): must be a whole number of microseconds")

    def __add__(self, other: Duration) -> Duration:
        if not isinstance(other, Duration):
            return NotImplemented
        return Duration(self.us + other.us)

    def __sub__(self, other: Duration) -> Duration:
        if not isinstance(other, Duration):
            return NotImplemented
        return Duration(self.us - other.us)

    def __mul__(self, times: int) -> Duration:
        if not isinstance(times, int):
            return NotImplemented
        return Duration(self.us * times)

    __rmul__ = __mul__

    @overload
    def __floordiv__(self, other: Duration) -> int: ...
    @overload
    def __floordiv__(self, other: int) -> Duration: ...
    def __floordiv__(self, other: Duration | int) -> int | Duration:
        if isinstance(other, Duration):
            return self.us // other.us
        if not isinstance(other, int):
            return NotImplemented
        return Duration(self.us // other)

    def __neg__(self) -> Duration:
        return Duration(-self.us)

    def __bool__(self) -> bool:
        return self.us != 0

    def identity(self) -> int:
        """Its identity in a checkpoint."""
        return self.us

    def __repr__(self) -> str:
        return repr(str(self))

    def __str__(self) -> str:
        for unit, unit_us in _UNITS_US.items():
            if unit != "week" and self.us % unit_us == 0 and (self.us != 0 or unit == "second"):
                amount = self.us // unit_us
                return f"{amount} {unit}{'' if abs(amount) == 1 else 's'}"
        raise AssertionError("every whole number is a multiple of one microsecond")


def span_in_words(us: int) -> str:
    """Microseconds in words, in at most two units, rounded down: "2 minutes 30 seconds"."""
    words: list[str] = []
    left = abs(us)
    for unit, unit_us in _UNITS_US.items():
        amount, left = divmod(left, unit_us) if unit != "week" else (0, left)
        if amount:
            words.append(f"{amount} {unit}{'' if amount == 1 else 's'}")
        if len(words) == 2 or (words and not amount):
            break
    return " ".join(words) or "0 seconds"


DurationLike: TypeAlias = Duration | timedelta | str | float
"""Accepted as a duration: text, a timedelta, or a number of seconds."""


def duration(where: str, value: DurationLike) -> Duration:
    """Read a duration given as text, timedelta, seconds or a Duration.

    Args:
        where: the argument, for the message, such as ``FixedWindows(size)``.
        value: ``"10 minutes"`` (weeks down to microseconds, terms may be added up: ``"1 hour 30 minutes"``),
            a timedelta, or a number of seconds. Rounded to the microsecond.

    Raises:
        OptionError: not a duration, too long for 64 bits, or a month or year, which have no fixed length.
    """
    us = _microseconds(where, value)
    if abs(us) > LONGEST_US:
        fix = "; give seconds, not micro- or milliseconds" if isinstance(value, (int, float)) else ""
        raise OptionError(f"{where}={value!r}: longer than 146,000 years{fix}")
    return Duration(us)


def _microseconds(where: str, value: Any) -> int:
    if isinstance(value, Duration):
        return value.us
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, str):
        return _parse(where, value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise OptionError(f"{where}={value!r}: must be text such as '10 minutes', a timedelta, or a number of seconds")
    return round(Fraction(value) * 1_000_000)


def _parse(where: str, text: str) -> int:
    total, at = Fraction(0), 0
    while at < len(text):
        term = _TERM.match(text, at)
        if term is None:
            break
        unit = term[2].lower().removesuffix("s")
        if unit in _CALENDAR:
            days, calendar = _CALENDAR[unit]
            raise OptionError(
                f"{where}={text!r}: a {unit} has no fixed length; give days, such as '{days} days', or for calendar periods use "
                f"CalendarWindows({calendar})"
            )
        if unit not in _UNITS_US:
            raise OptionError(
                f"{where}={text!r}: unknown unit {term[2]!r}; use weeks, days, hours, minutes, seconds, "
                "milliseconds or microseconds, written out"
            )
        total += Fraction(term[1]) * _UNITS_US[unit]
        at = term.end()
    if at < len(text) or not text.strip():
        raise OptionError(f"{where}={text!r}: not a duration; write it as '10 minutes' or '1 hour 30 minutes'")
    return round(total)


def positive(where: str, value: DurationLike) -> Duration:
    """Read a duration above 0, as ``duration`` does (OptionError: not a duration, or not above 0)."""
    result = duration(where, value)
    if result.us <= 0:
        raise OptionError(f"{where}={value!r}: must be above 0")
    return result


def not_negative(where: str, value: DurationLike) -> Duration:
    """Read a duration of at least 0, as ``duration`` does (OptionError: not a duration, or negative)."""
    result = duration(where, value)
    if result.us < 0:
        raise OptionError(f"{where}={value!r}: must not be negative")
    return result


if TYPE_CHECKING:  # type checkers treat a converter as a function of the value

    def read_duration(value: DurationLike) -> Duration:
        """Read a field like ``duration``."""

    def read_positive(value: DurationLike) -> Duration:
        """Read a field like ``positive``."""

    def read_not_negative(value: DurationLike) -> Duration:
        """Read a field like ``not_negative``."""

    def read_positive_or_none(value: DurationLike | None) -> Duration | None:
        """Read a field like ``positive``; None stays None."""

else:

    def _reader(read: Any, of: str = "Duration | timedelta | str | float") -> attrs.Converter:
        """A converter whose errors name the class and the attribute; ``of``: the field's type, for ``help()``."""

        def convert(value: Any, option: Any, field: Any) -> Any:
            return read(f"{type(option).__name__}({field.name})", value)

        convert.__annotations__ = {"value": of}
        return attrs.Converter(convert, takes_self=True, takes_field=True)

    def _positive_or_none(where: str, value: Any) -> Any:
        return None if value is None else positive(where, value)

    read_duration, read_positive, read_not_negative = _reader(duration), _reader(positive), _reader(not_negative)
    read_positive_or_none = _reader(_positive_or_none, "Duration | timedelta | str | float | None")
