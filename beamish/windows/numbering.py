"""How rows are numbered, where windows are counted in rows."""

from __future__ import annotations

import attrs

from beamish.durations import Duration

FARTHEST = 2**62
"""How far from 0 a number may be that a row brings along."""


@attrs.frozen
class Numbering:
    """How rows are numbered, and how far behind the greatest number a row may come.

    Attributes:
        over_stream: whether all rows are counted together; else those of each key by themselves.
        order_by: the columns by which the rows of a bundle are counted first; given numbers only.
        numbered_by: the column of the numbers that rows bring along; None: they are given 0, 1, 2 and so on as they come.
        delay: how far behind the greatest number the reach is; of brought numbers.
        idle: how long a key may be without a row before it is forgotten; None: it never is.
    """

    over_stream: bool
    order_by: tuple[str, ...] = ()
    numbered_by: str | None = None
    delay: int = 0
    idle: Duration | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read for it."""
        return self.order_by if self.numbered_by is None else (self.numbered_by,)

    def describe(self) -> str:
        """How rows get their numbers, in words."""
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
