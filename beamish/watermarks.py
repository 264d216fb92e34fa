"""Watermarks: how far event time has come, and so what is late."""

from __future__ import annotations

import attrs

from beamish.durations import Duration, read_not_negative, read_positive
from beamish.errors import OptionError


class Watermark:
    """Base of the watermark policies; not for subclassing by users, since Spark moves the watermark."""

    needs_clock: bool = False
    """Whether the watermark depends on the processing-time clock."""


@attrs.frozen
class BoundedOutOfOrderness(Watermark):
    """The watermark trails the greatest event time seen by ``delay`` (Spark's ``withWatermark``).

    Args:
        delay: how far out of order rows may come and still be on time; at least 0.
        max_future: rows later than the batch's clock by more than this do not move the watermark (they are
            windowed as usual), so that one future-dated row does not make all true rows late; None: all count.
        idle_timeout: when no row has moved the watermark for so long on the clock, it moves on with the
            clock, so that the last windows close without new data (RULES.md 3); None: it waits.

    Raises:
        OptionError: a negative delay, or a max_future or idle_timeout that is not above 0.
    """

    delay: Duration = attrs.field(converter=read_not_negative)
    max_future: Duration | None = attrs.field(default=None, converter=attrs.converters.optional(read_positive))
    idle_timeout: Duration | None = attrs.field(default=None, converter=attrs.converters.optional(read_positive))

    @property
    def needs_clock(self) -> bool:  # type: ignore[override]
        return self.idle_timeout is not None


@attrs.frozen
class ProcessingTimeLag(Watermark):
    """The watermark is the batch's clock minus ``lag`` (the fixed watermark)."""

    lag: Duration = attrs.field(converter=read_not_negative)
    needs_clock = True


@attrs.frozen
class Punctuated(Watermark):
    """Rows carry the watermark in ``column`` (a timestamp); it is the greatest one seen."""

    column: str = attrs.field()

    @column.validator
    def _check(self, _: object, value: object) -> None:
        if not isinstance(value, str) or not value:
            raise OptionError(f"Punctuated(column)={value!r}: the name of a timestamp column")
