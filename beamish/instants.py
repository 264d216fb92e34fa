"""Instants: aware datetimes or seconds outside, int64 microseconds since the epoch inside."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, TypeAlias

from beamish.errors import BeamishError, ScriptError
from beamish.python_values import NotPlainError, python_value

InstantLike: TypeAlias = datetime | float
"""Accepted as an instant: an aware datetime, or seconds since the epoch."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)

EARLIEST_US = (datetime.min.replace(tzinfo=UTC) - EPOCH) // _US
"""0001-01-01T00:00:00 UTC: the first event time that has a window."""
LATEST_US = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _US
"""9999-12-31T23:59:59.999999 UTC: the last event time that has a window."""
END_OF_TIME_US = 2**63 - 1
"""The end of the global window, and the watermark at the end of input."""
NO_TIME_US = END_OF_TIME_US - 1
"""The event time, in the global window, of a pane without a timestamp: the last microsecond of the window."""


def instant_us(where: str, value: Any, error: type[BeamishError] = ScriptError) -> int:
    """Microseconds since the epoch of an aware datetime or a number of seconds.

    Raises:
        ScriptError: (or ``error``) it is neither, a datetime without a time zone, or does not fit into 64 bits.
    """
    given = value
    try:
        value = python_value(given)
    except NotPlainError as refused:
        raise error(f"{where}={given!r}: {refused}") from None
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise error(f"{where}={given!r}: has no time zone; write it with tzinfo=UTC")
        return (value - EPOCH) // _US
    if isinstance(value, int) and not isinstance(value, bool):
        us = value * 1_000_000
    elif isinstance(value, float) and math.isfinite(value):
        us = round(Fraction(value) * 1_000_000)
    else:
        raise error(f"{where}={given!r}: must be seconds since the epoch or an aware datetime")
    if abs(us) > END_OF_TIME_US:
        raise error(f"{where}={given!r}: beyond 292,000 years; give seconds, not micro- or nanoseconds")
    return us


def instant_in_words(us: int) -> str:
    """Microseconds since the epoch as UTC, without a fraction of a second that is 0: ``2026-01-01 10:13:30``."""
    if us == END_OF_TIME_US:
        return "the end of time"
    return str(instant(us).replace(tzinfo=None))


def instant(us: int) -> datetime:
    """The aware UTC datetime of microseconds since the epoch, clamped to the years 1 to 9999.

    Windows around the first and last event times may extend beyond these years.
    """
    return EPOCH + min(max(us, EARLIEST_US), LATEST_US) * _US
