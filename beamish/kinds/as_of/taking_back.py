"""Rows of the left input that are taken back: each removes one that is equal in all."""

from __future__ import annotations

import numpy as np

from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kernels.order import ranks
from beamish.kinds.as_of.left_rows import LeftRows
from beamish.tables.timed_records import TimedRecords


def net(rows: LeftRows, takes_back: Flags) -> tuple[Ints, Ints]:
    """What is left of a bundle when its rows and what takes equal ones back have struck each other out.

    Args:
        rows: n rows.
        takes_back: bool, n.

    Returns:
        the indices of rows, and of what takes earlier ones back.
    """
    equal = _equal(rows)
    struck = np.minimum(equal[~takes_back].sizes(), equal[takes_back].sizes())
    return _beyond(equal, np.flatnonzero(~takes_back), struck), _beyond(equal, np.flatnonzero(takes_back), struck)


def taken_back(
    removes: LeftRows, waiting: TimedRecords[LeftRows], kept: TimedRecords[LeftRows]
) -> tuple[LeftRows, Ints]:
    """Find the rows that are taken back; those that wait go at once.

    Args:
        removes: equal to them.
        waiting, kept: where they are. Of equal rows one that waits goes first, then one of which the fewest panes came.

    Returns:
        those that came out, and their indices among ``kept``.
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
    """Those of equal rows."""
    rank = ranks(rows.order())
    return Groups(rank, int(rank.max(initial=-1)) + 1)


def _places(groups: Groups) -> Ints:
    """The place of each entry among those of its group."""
    order = np.argsort(groups.of, kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = Groups(groups.of[order], groups.count).positions()
    return places


def _beyond(groups: Groups, at: Ints, struck: Ints) -> Ints:
    """Of some entries those that are left when the first of each group, so many, are struck out."""
    own = groups[at]
    return at[_places(own) >= struck[own.of]]
