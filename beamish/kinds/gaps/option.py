"""``Pipeline.fill_gaps``: the grid, the values of filled rows, and how far they follow a row (docs/rules/gaps.md)."""

from __future__ import annotations

import enum
from typing import Any

import attrs

from beamish.durations import Duration, DurationLike, duration, positive
from beamish.errors import OptionError
from beamish.kernels.buffers import Ints

_MOST = 1_000_000
"""Most rows that follow one row."""


class FillBy(enum.StrEnum):
    """The values of a filled row."""

    LAST = "last"
    """Those of the row before the gap."""
    LINEAR = "linear"
    """Numbers on the line between the rows before and after the gap."""
    NULL = "null"


@attrs.frozen
class GapFilling:
    """The options of a stage that fills gaps.

    Attributes:
        step: the length of a cell of the grid.
        by: the values of filled rows.
        within: how long after a row its gap is filled.
        offset: the start of one cell, counted from the epoch.
    """

    step: Duration
    by: FillBy
    within: Duration
    offset: Duration

    @property
    def call(self) -> str:
        """The call that declares it."""
        offset = f", offset={str(self.offset)!r}" if self.offset.us else ""
        return f"fill_gaps(step={str(self.step)!r}, by={str(self.by)!r}, within={str(self.within)!r}{offset})"

    def cell_us(self, time_us: Ints) -> Ints:
        """The start of the cell of each time: int64, microseconds."""
        return (time_us - self.offset.us) // self.step.us * self.step.us + self.offset.us


def read_gap_filling(step: DurationLike, by: Any, within: DurationLike, offset: DurationLike) -> GapFilling:
    """Read the arguments of a call (OptionError: an invalid value)."""
    length, span = positive("fill_gaps: step", step), positive("fill_gaps: within", within)
    if by not in tuple(FillBy):
        raise OptionError(f"fill_gaps(by={by!r}): must be one of {', '.join(repr(str(one)) for one in FillBy)}")
    if span < length:
        raise OptionError(
            f"fill_gaps(step={str(length)!r}, within={str(span)!r}): within is shorter than a step, so no row would be filled; give a longer one"
        )
    if span.us // length.us > _MOST:
        raise OptionError(
            f"fill_gaps(step={str(length)!r}, within={str(span)!r}): up to {span.us // length.us:,} rows would follow one row, the limit is "
            f"{_MOST:,}; give a longer step or a shorter within"
        )
    return GapFilling(length, FillBy(by), span, duration("fill_gaps: offset", offset))
