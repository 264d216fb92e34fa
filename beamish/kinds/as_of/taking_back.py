"""Retractions of left rows: each removes one equal row."""

from __future__ import annotations

import numpy as np

from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kernels.order import ranks
from beamish.kinds.as_of.left_rows import LeftRows
from beamish.tables.timed_records import TimedRecords


def net(rows: LeftRows, takes_back: Flags) -> tuple[Ints, Ints]:
    """Cancel rows of a bundle with the retractions of equal ones.

    Args:
        rows: n rows.
        takes_back: bool, n.

    Returns:
        the indices of the remaining rows, and of retractions of earlier rows.
    """
    equal = _equal(rows)
    struck = np.minimum(equal[~takes_back].sizes(), equal[takes_back].sizes())
    return _beyond(equal, np.flatnonzero(~takes_back), struck), _beyond(equal, np.flatnonzero(takes_back), struck)


def taken_back(
    removes: LeftRows, waiting: TimedRecords[LeftRows], kept: TimedRecords[LeftRows]
) -> tuple[LeftRows, Ints]:
    """Find the retracted rows; waiting ones are removed.

    Args:
        removes: the retractions.
        waiting, kept: where to find them. Among equal rows a waiting one is removed first, then the one with the fewest panes.

    Returns:
        the emitted ones, and their indices in ``kept``.
    """
    none = np.empty(0, np.int64)
    if not len(removes):
        return removes, none
    least, greatest = int(removes["time_us"].min()), int(removes["time_us"].max())
    waits, keeps = waiting.between(least, greatest), kept.between(least, greatest)
    keeps = kept.records.by_panes(keeps)
    there = LeftRows.concat([waiting.records.take(waits), kept.records.take(keeps), removes])
    equal = _equal(there)
    count = len(waits) + len(keeps)
    found = np.arange(count)[_places(equal[:count]) < equal[count:].sizes()[equal.of[:count]]]
    waiting.remove(waits[found[found < len(waits)]])
    gone = keeps[found[found >= len(waits)] - len(waits)]
    return kept.records.take(gone), gone


def _equal(rows: LeftRows) -> Groups:
    """Groups of equal rows."""
    rank = ranks(rows.order())
    return Groups(rank, int(rank.max(initial=-1)) + 1)


def _places(groups: Groups) -> Ints:
    """Position of each entry within its group."""
    order = np.argsort(groups.of, kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = Groups(groups.of[order], groups.count).positions()
    return places


def _beyond(groups: Groups, at: Ints, struck: Ints) -> Ints:
    """The entries left after dropping the first n of each group."""
    own = groups[at]
    return at[_places(own) >= struck[own.of]]
