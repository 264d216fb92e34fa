"""Instants: aware datetimes or seconds outside, int64 microseconds since the epoch inside."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from beamish.errors import ScriptError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)


def instant_us(where: str, value: Any) -> int:
    """Microseconds since the epoch of an aware datetime or a number of seconds.

    Raises:
        ScriptError: it is neither, or a datetime without a time zone.
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ScriptError(f"{where}={value!r}: has no time zone; write it with tzinfo=UTC")
        return (value - EPOCH) // _US
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ScriptError(f"{where}={value!r}: a time is seconds since the epoch or an aware datetime")
    return round(Fraction(value) * 1_000_000)


def instant(us: int) -> datetime:
    """The aware UTC datetime of microseconds since the epoch."""
    return EPOCH + us * _US
