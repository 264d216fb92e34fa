"""The contract of a window option: which windows a row falls in, and which windows merge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from beamish.errors import UserFunctionError

Bounds = tuple[int, int]
"""``(start, end)`` of a window ``[start, end)``, in microseconds since the epoch."""

END_OF_TIME_US = 2**63 - 1
"""The end of the global window, and the watermark after the last row of all."""

Times = NDArray[np.int64]


class WindowOption:
    """Says which windows a row falls in. Subclass it for windows of your own.

    A subclass is best a frozen attrs class (equal by value, with a repr). It defines ``assign`` and, if its
    windows merge, sets ``merging = True`` and may redefine ``merge``. Both are pure functions: the same
    arguments give the same windows, since a batch may be run again.

    Example:
        >>> import attrs, beamish as bm
        >>> @attrs.frozen
        ... class UntilMidnight(bm.WindowOption):
        ...     def assign(self, timestamp_us):
        ...         day = 86_400_000_000
        ...         yield timestamp_us, timestamp_us - timestamp_us % day + day
    """

    merging: ClassVar[bool] = False
    """Whether windows of a key that overlap become one."""
    columns: Sequence[str] = ()
    """Columns whose values ``assign`` gets beside the timestamp, such as a gap that rows bring along."""

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        """The windows of one row: ``(start, end)`` pairs in microseconds, start before end; none: no window."""
        raise NotImplementedError(f"{type(self).__name__}.assign(timestamp_us) is not written")

    def merge(self, windows: Sequence[Bounds]) -> Iterable[tuple[Sequence[Bounds], Bounds]]:
        """Groups of windows of one key that become one, each as ``(members, result)``.

        ``windows`` are distinct and sorted. A window in no group stays as it is. The default merges windows that
        overlap (``a.start < b.end and b.start < a.end``; touching is not overlapping) into their span.
        """
        members: list[Bounds] = []
        end = 0
        for window in windows:
            if members and window[0] >= end:
                yield members, (members[0][0], end)
                members = []
            end = max(end, window[1]) if members else window[1]
            members.append(window)
        if members:
            yield members, (members[0][0], end)

    # What follows is the same on columns. Built-in options redefine it; this one calls ``assign`` row by row.

    @property
    def merges_by_overlap(self) -> bool:
        """Whether ``merge`` is the default, so that the engine may do it on columns."""
        return self.merging and type(self).merge is WindowOption.merge

    @property
    def period_us(self) -> int | None:
        """How far apart windows' ends are, as a hint for how state is cut into segments; None: not known."""
        return None

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        """The windows of many rows.

        Args:
            timestamps_us: int64, one a row.
            columns: the values of ``self.columns``, as long.

        Returns:
            row (index into ``timestamps_us``), start and end: int64, one entry for each (row, window), by row.
        """
        rows: list[int] = []
        bounds: list[Bounds] = []
        for row, arguments in enumerate(zip(timestamps_us.tolist(), *columns, strict=True)):
            try:
                for start, end in self.assign(*arguments):
                    if not start < end:
                        raise ValueError(f"window ({start}, {end}): start must be before end")
                    rows.append(row)
                    bounds.append((int(start), int(end)))
            except Exception as error:
                result = UserFunctionError(
                    f"{self!r}.assign{arguments!r} raised {type(error).__name__}: {error}; mend it and start again "
                    "from the checkpoint, nothing was lost"
                )
                result.group = row
                raise result from error
        table = np.array(bounds, dtype=np.int64).reshape(-1, 2)
        return np.array(rows, dtype=np.int64), table[:, 0].copy(), table[:, 1].copy()
