"""Watermark policies: the progress of event time, which decides which rows are late.

A policy defines which column moves the watermark, how far it trails, and whether the clock is needed. It also advances the
watermark in a step (docs/rules/time.md#steps-and-clocks, #idle-timeout, #processing-time-lag).
"""

from __future__ import annotations

from typing import Any

import attrs

from beamish.costs import check_span
from beamish.durations import Duration, read_not_negative, read_positive_or_none
from beamish.errors import OptionError
from beamish.instants import END_OF_TIME_US

NO_WATERMARK_US = -(2**63)
"""No watermark yet: less than every time."""


def known_us(watermark_us: int) -> int | None:
    """A watermark; None before there is one."""
    return None if watermark_us == NO_WATERMARK_US else watermark_us


@attrs.define
class Progress:
    """The progress of a watermark, in microseconds since the epoch.

    Attributes:
        watermark_us: the watermark, which decides which rows are late; never goes back.
        source_us: the watermark of its source (Spark, a script, the stage before); the watermark is ahead of it only if the
            policy advances it with the clock.
        risen_at_us: the clock of the step in which ``source_us`` last rose.
        latest_us: the latest event time of its rows in the shard, if there are several inputs; informational.
    """

    watermark_us: int = NO_WATERMARK_US
    source_us: int = NO_WATERMARK_US
    risen_at_us: int = 0
    latest_us: int = NO_WATERMARK_US

    def rise(self, watermark_us: int) -> None:
        """Raise the watermark to at least this."""
        self.watermark_us = max(self.watermark_us, watermark_us)


@attrs.frozen
class Watermark:
    """Base of the watermark policies, and the policy of a stage whose watermark is forwarded by the stage before.

    Not for subclassing by users, since Spark advances the watermark.
    """

    @property
    def needs_clock(self) -> bool:
        """Whether the watermark depends on the processing-time clock."""
        return False

    @property
    def moved_by_rows(self) -> bool:
        """Whether rows, or a script in their place, move the watermark; otherwise only the clock does."""
        return True

    @property
    def delay(self) -> Duration:
        """How far the watermark trails the maximum of the followed column."""
        return Duration(0)

    @property
    def max_future(self) -> Duration | None:
        """Rows later than the clock by more than this do not move the watermark; None: all do."""
        return None

    @property
    def idle_timeout(self) -> Duration | None:
        """After how long without a move the watermark advances with the clock; None: never."""
        return None

    @property
    def lag(self) -> Duration | None:
        """How far the watermark trails the clock; None: it does not follow the clock."""
        return None

    def followed_column(self, event_time: Any) -> Any:
        """The column whose maximum moves the watermark, given the event-time column; None: no column does."""
        return None

    def describe(self) -> str:
        """A description of the watermark."""
        return "that of the stage before"

    def advance(self, progress: Progress, source_us: int | None, clock_us: int | None, clock_before_us: int) -> None:
        """Advance ``progress`` by one step.

        Args:
            progress: is modified.
            source_us: the watermark of the source; None, or not above the earlier one: it does not rise.
            clock_us: the clock after the step; None, or an earlier one: unchanged.
            clock_before_us: the clock before the step.
        """
        self._take_over(progress, source_us, _clock_after(clock_us, clock_before_us))

    def _take_over(self, progress: Progress, source_us: int | None, clock_us: int) -> bool:
        """Raise it to the source's watermark; returns whether that rose."""
        if source_us is None or source_us <= progress.source_us:
            return False
        progress.source_us, progress.risen_at_us = source_us, clock_us
        progress.rise(source_us)
        return True


def _clock_after(clock_us: int | None, clock_before_us: int) -> int:
    return clock_before_us if clock_us is None else max(clock_before_us, clock_us)


@attrs.frozen
class BoundedOutOfOrderness(Watermark):
    """The watermark trails the greatest event time seen by ``delay`` (Spark's ``withWatermark``).

    Args:
        delay: how far out of order rows may be and still be on time; at least 0.
        max_future: rows later than the batch's clock by more than this do not move the watermark (they are
            windowed as usual), so that one future-dated row does not make all others late; None: all do.
        idle_timeout: when no row has moved the watermark for this long on the clock, it advances with the clock, so that the last
            windows end without new data (docs/rules/time.md#idle-timeout); None: it waits.

    Raises:
        OptionError: a negative delay, or a max_future or idle_timeout that is not above 0.

    Example:
        >>> import beamish as bm
        >>> bm.BoundedOutOfOrderness("30 seconds", idle_timeout="5 minutes").needs_clock
        True
    """

    delay: Duration = attrs.field(converter=read_not_negative)
    max_future: Duration | None = attrs.field(default=None, converter=read_positive_or_none)
    idle_timeout: Duration | None = attrs.field(default=None, converter=read_positive_or_none)

    def __attrs_post_init__(self) -> None:
        check_span(
            "BoundedOutOfOrderness(delay)", self.delay, "the watermark trails by this much, and windows end as late"
        )
        if self.idle_timeout is not None:
            check_span("BoundedOutOfOrderness(idle_timeout)", self.idle_timeout, "an idle stream waits for this long")

    @property
    def needs_clock(self) -> bool:
        return self.idle_timeout is not None

    def followed_column(self, event_time: Any) -> Any:
        return event_time

    def describe(self) -> str:
        words = f"the maximum event time so far minus {self.delay}; it moves between batches"
        if self.max_future is not None:
            words += f"; rows later than the clock by more than {self.max_future} do not move it"
        if self.idle_timeout is not None:
            return words + f"; when it has not moved for {self.idle_timeout} on the clock, it advances with the clock"
        return words + "; when rows stop, it stops, and open windows stay open (an idle_timeout closes them)"

    def advance(self, progress: Progress, source_us: int | None, clock_us: int | None, clock_before_us: int) -> None:
        if not self._take_over(progress, source_us, _clock_after(clock_us, clock_before_us)):
            self._idle(progress, clock_before_us)

    def _idle(self, progress: Progress, clock_before_us: int) -> None:
        # One step late on purpose: rows of the previous step may still move the watermark
        # (docs/rules/time.md#idle-timeout).
        quiet_us = clock_before_us - progress.risen_at_us
        if self.idle_timeout is None or progress.source_us == NO_WATERMARK_US or quiet_us < self.idle_timeout.us:
            return
        progress.rise(min(progress.source_us + quiet_us, END_OF_TIME_US))


@attrs.frozen
class NoWatermark(Watermark):
    """No watermark until the end of time: rows have no event time."""

    def describe(self) -> str:
        return "none: rows have no event time, so nothing waits for it"


@attrs.frozen
class ProcessingTimeLag(Watermark):
    """The watermark is the batch's clock less ``lag``, independent of rows.

    Args:
        lag: a duration of at least 0.

    Raises:
        OptionError: a negative lag.
    """

    lag: Duration = attrs.field(converter=read_not_negative)

    def __attrs_post_init__(self) -> None:
        check_span("ProcessingTimeLag(lag)", self.lag, "the watermark trails by this much, and windows end as late")

    @property
    def needs_clock(self) -> bool:
        return True

    @property
    def moved_by_rows(self) -> bool:
        return False

    def describe(self) -> str:
        return f"the batch's clock minus {self.lag}"

    def advance(self, progress: Progress, source_us: int | None, clock_us: int | None, clock_before_us: int) -> None:
        now_us = _clock_after(clock_us, clock_before_us)
        self._take_over(progress, source_us, now_us)
        if clock_us is not None:
            progress.rise(now_us - self.lag.us)


@attrs.frozen
class Punctuated(Watermark):
    """Rows carry the watermark in a column; the watermark is its maximum so far.

    Args:
        column: the name of a timestamp column; nulls are ignored.

    Raises:
        OptionError: not a name.
    """

    column: str = attrs.field()

    @column.validator
    def _check(self, _: object, value: object) -> None:
        if not isinstance(value, str) or not value:
            raise OptionError(f"Punctuated(column)={value!r}: must be the name of a timestamp column")

    def followed_column(self, event_time: Any) -> Any:
        return self.column

    def describe(self) -> str:
        return f"the maximum value of {self.column} so far; it moves between batches"
