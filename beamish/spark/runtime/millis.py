"""Conversion between Spark's milliseconds and the engine's microseconds; the only such module.

Spark's watermark is a number of milliseconds, 0 if undefined, rounded *down* from the microseconds it follows: it is never too
late. A timer's milliseconds are rounded *up*: it fires in the first batch whose watermark is at or past it, so that for every
watermark W and every due time D, in microseconds, ``W <= watermark`` and ``watermark >= timer_ms(D)`` together mean that the
engine's watermark has reached D.
"""

from __future__ import annotations

from beamish.instants import END_OF_TIME_US

END_OF_TIME_MS = 2**62 // 1000
"""The end of time as Spark's watermark: the year 148,108, which no row of a real stream reaches."""


def watermark_us(spark_ms: int) -> int | None:
    """The engine's watermark for Spark's; None if Spark has none yet (at or below 0)."""
    if spark_ms <= 0:
        return None
    return END_OF_TIME_US if spark_ms >= END_OF_TIME_MS else spark_ms * 1000


def timer_ms(due_us: int) -> int:
    """The timer that fires when the watermark has reached ``due_us``, rounded up; at least 1."""
    return min(max(-(-due_us // 1000), 1), END_OF_TIME_MS)


def delay_parts(delay_us: int) -> tuple[int, int]:
    """A delay as whole milliseconds, for ``withWatermark``, and the remaining microseconds."""
    return divmod(delay_us, 1000)


def watermark_row_us(us: int) -> int:
    """The time of a row, in microseconds, that makes the watermark ``us`` (whole milliseconds or the end of time)."""
    return END_OF_TIME_MS * 1000 if us == END_OF_TIME_US else us


def is_watermark(us: int) -> bool:
    """Whether Spark's watermark can be exactly ``us``: whole milliseconds above 0, or the end of time."""
    return us == END_OF_TIME_US or (us % 1000 == 0 and 0 < us < END_OF_TIME_MS * 1000)
