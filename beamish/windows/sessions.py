"""Session windows: rows of a key separated by less than a gap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from beamish.costs import check_span
from beamish.durations import Duration, read_positive
from beamish.windows.option import Bounds, Times, WindowOption


@attrs.frozen
class Sessions(WindowOption):
    """A row starts as ``[ts, ts + gap)`` of its key; overlapping windows of a key merge into their span.

    Windows that only touch stay apart (Beam guide, "Session windows"; Spark's ``session_window`` merges them).

    Args:
        gap: the inactivity after which a session ends, above 0.

    Raises:
        OptionError: a gap that is not above 0.

    Example:
        >>> import beamish as bm
        >>> bm.Sessions("30 minutes").describe()
        'sessions: rows of a key less than 30 minutes apart; they grow and merge as rows come'
    """

    gap: Duration = attrs.field(converter=read_positive)
    merging: ClassVar[bool] = True

    def __attrs_post_init__(self) -> None:
        check_span(
            "Sessions(gap)", self.gap, "a session ends, and its state is dropped, only this long after its last row"
        )

    def describe(self) -> str:
        return f"sessions: rows of a key less than {self.gap} apart; they grow and merge as rows come"

    @property
    def overlaps(self) -> bool:
        return False

    @property
    def period_us(self) -> int:
        return self.gap.us

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        yield timestamp_us, timestamp_us + self.gap.us

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        return np.arange(len(timestamps_us), dtype=np.int64), timestamps_us, timestamps_us + self.gap.us
