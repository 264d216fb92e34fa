"""Times of panes: datetimes that are clamped to the years 1 to 9999 but know the exact time.

A later stage uses exact bounds and timestamps, not the clamped ones (rules/windows.md#event-time-range).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from beamish.instants import EARLIEST_US, LATEST_US, instant, instant_us


class Beyond(datetime):
    """A time beyond the range of datetimes."""

    us: int

    def __eq__(self, other: object) -> bool:
        return self.us == other.us if isinstance(other, Beyond) else super().__eq__(other)

    def __lt__(self, other: Any) -> bool:
        return moment_us(self) < moment_us(other)

    def __gt__(self, other: Any) -> bool:
        return moment_us(self) > moment_us(other)

    def __hash__(self) -> int:
        return super().__hash__()

    def __deepcopy__(self, _: Any) -> Beyond:
        return self


def moment(us: int) -> datetime:
    """The datetime of microseconds since the epoch."""
    shown = instant(us)
    if EARLIEST_US <= us <= LATEST_US:
        return shown
    beyond = Beyond.combine(shown.date(), shown.timetz())
    beyond.us = us
    return beyond


def moment_us(value: Any) -> int:
    """Microseconds since the epoch of such a time, or of an event time in a script."""
    return value.us if isinstance(value, Beyond) else instant_us("time", value)
