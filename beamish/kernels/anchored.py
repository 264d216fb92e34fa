"""Windows anchored at the times of rows: which of a key's windows change as rows arrive, and the rows to add to each.

A window has a fixed length. One ends at each row, and one starts just after it if it has a row. Rows and windows are compared on
columns sorted by key and time, so the cost is that of a sort and of the pairs found.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from beamish.kernels.buffers import Flags, Ints, starts
from beamish.kernels.order import run_starts


@attrs.frozen(eq=False)
class AnchoredRanges:
    """Windows, each with a range of rows to add.

    Attributes:
        start_us: int64[n], the start of each window.
        rows: int64[m], indices of rows, which ranges refer to.
        first, last: int64[n], the positions in ``rows`` of the first row of each window, and of the one after its last.
    """

    start_us: Ints
    rows: Ints
    first: Ints
    last: Ints

    def only(self, kept: Flags) -> AnchoredRanges:
        """Those with ``kept`` set."""
        return attrs.evolve(self, start_us=self.start_us[kept], first=self.first[kept], last=self.last[kept])

    def parts(self, most: int) -> Iterator[AnchoredRanges]:
        """Cut into parts of about ``most`` pairs."""
        part = starts(self.last - self.first) // most
        for number in np.unique(part).tolist():
            yield self.only(part == number)

    def pairs(self) -> tuple[Ints, Ints]:
        """The pairs of window and row: the indices of both."""
        count = self.last - self.first
        window = np.repeat(np.arange(len(count)), count)
        at = np.arange(len(window)) - starts(count)[window] + self.first[window]
        return window, self.rows[at]


def changed_windows(key: Ints, time_us: Ints, is_old: Flags, length_us: int) -> AnchoredRanges:
    """The windows that new rows create or change: a new one takes all of its rows, another one the new ones.

    Args:
        key: int64[n], a number of the key of each row.
        time_us: int64[n], their times.
        is_old: bool[n], whether a row came before.
        length_us: the length of a window ``[start, start + length)``.
    """
    order = np.lexsort((time_us, key))
    key, time_us, is_old = key[order], time_us[order], is_old[order]
    of, start_us = np.concatenate([key, key]), np.concatenate([time_us + 1 - length_us, time_us + 1])
    by_start = np.lexsort((start_us, of))
    of, start_us = of[by_start], start_us[by_start]
    distinct = run_starts([of, start_us])
    of, start_us = of[distinct], start_us[distinct]

    def before(offset_us: int) -> Ints:
        """How many rows come before a time in each window, in the order of key and time."""
        return _rows_before(key, time_us, of, start_us + offset_us)

    first, last = before(0), before(length_us)
    end, after = before(length_us - 1), before(-1)  # of the rows that windows end at, and that they start after
    old = np.append(0, np.cumsum(is_old))
    holds_old = old[last] > old[first]
    existed = (old[last] > old[end]) | ((old[first] > old[after]) & holds_old)
    has_new = (last - first) > (old[last] - old[first])
    exists = (last > end) | ((first > after) & (last > first))
    changes = exists & (has_new | ~existed)
    # Rows of all windows, then the new ones, which windows that existed take.
    new = np.arange(len(order) + 1) - old
    first = np.where(existed, len(order) + new[first], first)
    last = np.where(existed, len(order) + new[last], last)
    return AnchoredRanges(start_us, np.concatenate([order, order[~is_old]]), first, last).only(changes)


def _rows_before(key: Ints, time_us: Ints, of: Ints, at_us: Ints) -> Ints:
    """How many rows, sorted by key and time, come before each key and time of others, sorted likewise."""
    is_row = np.repeat([False, True], [len(of), len(key)])
    order = np.lexsort((is_row, np.concatenate([at_us, time_us]), np.concatenate([of, key])))
    is_row = is_row[order]
    before: Ints = np.cumsum(is_row)[~is_row]
    return before
