"""Calendar windows: days, weeks, months and years in a time zone."""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import attrs
import numpy as np

from beamish.errors import OptionError
from beamish.instants import EARLIEST_US, EPOCH, LATEST_US
from beamish.windows.option import Bounds, Times, WindowOption

_DAY_US = 86_400_000_000
_US = timedelta(microseconds=1)
_UNITS = ("days", "weeks", "months", "years")


def _read_date(value: date | str | None) -> Any:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError as error:
            raise OptionError(f"CalendarWindows(starting)={value!r}: must be a date, such as '2024-01-01'") from error
    return value


@attrs.frozen
class CalendarWindows(WindowOption):
    """Windows of whole days, weeks, months or years in a time zone, 23- and 25-hour days among them.

    Boundary k is the local midnight of ``starting + k * n`` units, each counted from ``starting`` (31 January
    and one month is the last of February). A midnight that does not exist is the first instant after it, a repeated one is the
    first (docs/rules/windows.md#calendar-windows; Beam's Java CalendarWindows). Before the year 1 and after 9999 there are no
    boundaries: the first window begins, and the last one ends, with these years (in UTC).

    Args:
        days, weeks, months, years: exactly one of them, a whole number of at least 1.
        timezone: an IANA name, such as "Europe/Paris".
        starting: a date (or its ISO text) on which a window starts; default 1970-01-01, for weeks Monday 1970-01-05.

    Raises:
        OptionError: not exactly one unit, a count below 1, an unknown time zone, or an invalid date.

    Example:
        >>> import beamish as bm
        >>> bm.CalendarWindows(months=1, timezone="Europe/Paris").describe()
        'calendar, 1 month long by the clocks of Europe/Paris, counted from 1970-01-01'
    """

    days: int | None = attrs.field(default=None, kw_only=True)
    weeks: int | None = attrs.field(default=None, kw_only=True)
    months: int | None = attrs.field(default=None, kw_only=True)
    years: int | None = attrs.field(default=None, kw_only=True)
    timezone: str = attrs.field(default="UTC", kw_only=True)
    starting: date | str | None = attrs.field(
        default=None, kw_only=True, converter=_read_date, repr=lambda d: repr(d and str(d))
    )

    def __attrs_post_init__(self) -> None:
        given = {unit: getattr(self, unit) for unit in _UNITS if getattr(self, unit) is not None}
        if len(given) != 1:
            raise OptionError(f"CalendarWindows({given}): give exactly one of days, weeks, months and years")
        ((unit, count),) = given.items()
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise OptionError(f"CalendarWindows({unit}={count!r}): must be a whole number of at least 1")
        if not isinstance(self.timezone, str):
            raise OptionError(
                f"CalendarWindows(timezone={self.timezone!r}): must be an IANA name, such as 'Europe/Paris'"
            )
        try:
            ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise OptionError(
                f"CalendarWindows(timezone={self.timezone!r}): no such time zone; use an IANA name, such as 'Europe/Paris'"
            ) from error
        if self.starting is not None and (not isinstance(self.starting, date) or isinstance(self.starting, datetime)):
            raise OptionError(f"CalendarWindows(starting={self.starting!r}): must be a date, such as '2024-01-01'")

    def describe(self) -> str:
        ((unit, count),) = ((unit, getattr(self, unit)) for unit in _UNITS if getattr(self, unit) is not None)
        length = f"{count} {unit}" if count > 1 else f"1 {unit.removesuffix('s')}"
        return f"calendar, {length} long by the clocks of {self.timezone}, counted from {_start(self)}"

    @property
    def overlaps(self) -> bool:
        return False

    @property
    def period_us(self) -> int:
        return (self.days or 7 * (self.weeks or 0) or 28 * (self.months or 0) or 365 * (self.years or 0)) * _DAY_US

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        _, start, end = self.assign_columns(np.array([timestamp_us], dtype=np.int64))
        yield int(start[0]), int(end[0])

    def slices(self, timestamps_us: Times) -> Times:
        _, start, _ = self.assign_columns(timestamps_us)
        return start

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        # The loop is over the distinct days in the data; rows find their window by binary search.
        near: set[int] = set()
        for day in np.unique(timestamps_us // _DAY_US).tolist():
            period = _period_about(self, day)
            near.update(range(period - 1, period + 3))
        boundaries = np.array([_boundary_us(self, period) for period in sorted(near)], dtype=np.int64)
        after = np.searchsorted(boundaries, timestamps_us, side="right")
        return np.arange(len(after), dtype=np.int64), boundaries[after - 1], boundaries[after]


def _start(option: CalendarWindows) -> date:
    if isinstance(option.starting, date):
        return option.starting
    return date(1970, 1, 5) if option.weeks else date(1970, 1, 1)


def _period_about(option: CalendarWindows, day: int) -> int:
    """The number of the period of a day (counted from the epoch, in UTC), plus or minus one."""
    start = _start(option)
    if option.days or option.weeks:
        return (day - (start - date(1970, 1, 1)).days) // (option.days or 7 * (option.weeks or 1))
    on = date(1970, 1, 1) + timedelta(days=day)
    months = (on.year - start.year) * 12 + on.month - start.month
    return months // (option.months or 12 * (option.years or 1))


@lru_cache(maxsize=100_000)
def _boundary_us(option: CalendarWindows, period: int) -> int:
    """The first instant of a period, in microseconds since the epoch; clamped to the years 1 to 9999."""
    first = _first_day(option, period)
    if first < date.min.toordinal():
        return EARLIEST_US
    if first > date.max.toordinal():
        return LATEST_US + 1
    return _local_midnight_us(date.fromordinal(first), ZoneInfo(option.timezone))


def _first_day(option: CalendarWindows, period: int) -> int:
    """The first day of a period as an ordinal, which may be outside the range of dates."""
    start = _start(option)
    if option.days or option.weeks:
        return start.toordinal() + period * (option.days or 7 * (option.weeks or 1))
    month = start.month - 1 + period * (option.months or 12 * (option.years or 1))
    year, month = start.year + month // 12, month % 12 + 1
    if not date.min.year <= year <= date.max.year:
        return date.min.toordinal() - 1 if year < date.min.year else date.max.toordinal() + 1
    return date(year, month, min(start.day, calendar.monthrange(year, month)[1])).toordinal()


def _local_midnight_us(day: date, zone: ZoneInfo) -> int:
    midnight = datetime.combine(day, time(), tzinfo=zone)
    instant = (midnight - EPOCH) // _US
    if not EARLIEST_US <= instant <= LATEST_US:
        return EARLIEST_US if instant < EARLIEST_US else LATEST_US + 1
    if _local(instant, zone) == midnight.replace(tzinfo=None):
        return instant
    # Midnight is skipped. The clocks jump within a day and a half before `instant`: find that moment.
    before, after = instant - 3 * _DAY_US // 2, instant
    while after - before > 1:
        middle = (before + after) // 2
        if _local(middle, zone) < midnight.replace(tzinfo=None):
            before = middle
        else:
            after = middle
    return after


def _local(instant_us: int, zone: ZoneInfo) -> datetime:
    return (EPOCH + instant_us * _US).astimezone(zone).replace(tzinfo=None)
