"""Row numbering for count windows."""

from __future__ import annotations

import attrs

from beamish.durations import Duration

FARTHEST = 2**62
"""Maximum distance from 0 of a number in a row."""


@attrs.frozen
class Numbering:
    """How rows are numbered, and how far out of order they may be.

    Attributes:
        over_stream: whether all rows are counted together; otherwise each key separately.
        order_by: the columns by which the rows of a bundle are numbered first; for assigned numbers only.
        numbered_by: the column with the numbers; None: numbers 0, 1, 2 and so on are assigned on arrival.
        delay: how far the reach trails the greatest number; for numbers in rows.
        idle: how long a key may be without rows before it is dropped; None: never dropped.
    """

    over_stream: bool
    order_by: tuple[str, ...] = ()
    numbered_by: str | None = None
    delay: int = 0
    idle: Duration | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self.order_by if self.numbered_by is None else (self.numbered_by,)

    def describe(self) -> str:
        """How rows are numbered, in words."""
        which = "all rows together" if self.over_stream else "those of each key by themselves"
        if self.numbered_by is not None:
            words = f"rows bring their numbers, in {self.numbered_by}, {which}; a window is full when a number at its end has come"
            return words + (f" and {self.delay} more" if self.delay else "")
        by = ", ".join((*self.order_by, "event time", *(("key",) if self.over_stream else ()), "what is accumulated"))
        words = f"rows are numbered 0, 1, 2 and so on as they come, {which}, in a micro-batch by {by}"
        if self.idle is not None:
            words += (
                f"; a key whose last event time is {self.idle} behind the watermark is done, and counts from 0 again"
            )
        elif not self.over_stream:
            words += "; each key is kept, as its number, for ever"
        return words
