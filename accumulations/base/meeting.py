"""Joins of rows at most a span apart (``bm.Within``): a row matches some, not all, rows of the other side.

Both sides are in the order of event times, so the matches of a row are contiguous, and their bounds are found for all rows of all
panes at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.gathered import Pairs
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.buffers import flags, list_column, list_lengths, numbers, pick, struct_column
from beamish.kernels.groups import Groups


@attrs.frozen(repr=False, kw_only=True)
class MeetingPairs(Pairs):
    """A join whose right rows are from ``before_us`` before a left row to ``after_us`` after it, bounds included.

    Rows without a match are left out, so that two values of a growing window are equal if and only if their pairs are.

    Attributes:
        before_us, after_us: microseconds.
    """

    before_us: int
    after_us: int

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        rows = self.row_types(types)
        items = [pa.list_(pa.struct([("time", pa.int64()), ("row", row)])) for row in rows]
        return pa.struct([(side.name, item) for side, item in zip(self.sides, items, strict=True)])

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        meeting = self._meeting(state)
        kept = (meeting.last > meeting.first) | self.keeps_left, meeting.is_met | self.keeps_right
        lists = [
            list_column(
                items.flatten().filter(flags(own)), Groups.each(len(items)).repeat(list_lengths(items))[own].sizes()
            )
            for items, own in zip(state, kept, strict=True)
        ]
        return struct_column(lists, [side.name for side in self.sides])

    def explode(self, values: pa.Array, whole: Flags) -> tuple[NDArray[np.int64], pa.Array]:
        sides = [side.filter(flags(~whole)) for side in values.flatten()]
        meeting, at = self._meeting(sides), np.flatnonzero(~whole)
        many = meeting.last - meeting.first
        left = np.repeat(np.arange(len(many)), many)
        right = np.arange(len(left)) - np.repeat(np.cumsum(many) - many, many) + meeting.first[left]
        alone_left = np.flatnonzero(many == 0) if self.keeps_left else np.empty(0, np.int64)
        alone_right = np.flatnonzero(~meeting.is_met) if self.keeps_right else np.empty(0, np.int64)
        none = np.full(len(alone_left) + len(alone_right), -1)
        left = np.concatenate([left, alone_left, none[: len(alone_right)]])
        right = np.concatenate([right, none[: len(alone_left)], alone_right])
        of = np.concatenate([meeting.of_left[left[: len(left) - len(alone_right)]], meeting.of_right[alone_right]])
        passing = np.flatnonzero(whole)
        row = np.concatenate([at[of], passing])
        order = np.argsort(row, kind="stable")
        nothing = np.full(len(passing), -1)
        columns = [
            pick(side.flatten().field("row"), np.concatenate([places, nothing])[order])
            for side, places in zip(sides, (left, right), strict=True)
        ]
        row = row[order]
        names = [side.name for side in self.sides]
        return row, pa.StructArray.from_arrays(columns, names=names, mask=flags(whole[row]))

    def _meeting(self, sides: Sequence[pa.Array]) -> _Meeting:
        (left, of_left), (right, of_right) = (
            (numbers(side.flatten().field("time")), Groups.each(len(side)).repeat(list_lengths(side)).of)
            for side in sides
        )
        first, last = reach(of_left, left - self.before_us, left + self.after_us, of_right, right)
        reached = np.zeros(len(right) + 1, np.int64)
        np.add.at(reached, first, 1)
        np.add.at(reached, last, -1)
        return _Meeting(first, last, np.cumsum(reached)[:-1] > 0, of_left, of_right)


def reach(of_left: Ints, since: Ints, until: Ints, of_right: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Ranges of right rows that match each left row.

    Args:
        of_left: int64, one per left row: its group.
        since, until: int64, one per left row: it matches rows of its group in this range, microseconds, bounds included.
        of_right, right: int64, one per right row, ordered by both: its group and its time.

    Returns:
        int64, one per left row: its first matching right row, and the one after its last.
    """
    if not len(of_left) or not len(of_right):
        none = np.zeros(len(of_left), np.int64)
        return none, none
    least = min(int(since.min()), int(right.min()))
    span = max(int(until.max()), int(right.max())) - least + 1
    if (
        max(int(of_left.max()), int(of_right.max())) + 1
    ) * span >= 2**63:  # too wide for one number: the same over the ranks of the times
        known = np.unique(np.concatenate([right, since, until]))
        since, until, right = (np.searchsorted(known, times) for times in (since, until, right))
        least, span = 0, len(known)
    there = of_right * span + (right - least)
    begin = of_left * span - least
    return np.searchsorted(there, begin + since, side="left"), np.searchsorted(there, begin + until, side="right")


@attrs.frozen(eq=False)
class _Meeting:
    """Matches between rows.

    Attributes:
        first, last: int64, one per left row: its first matching right row, and the one after its last.
        is_met: bool, one per right row: whether it has a match.
        of_left, of_right: int64, one per row: the index of its value.
    """

    first: Ints
    last: Ints
    is_met: Flags
    of_left: Ints
    of_right: Ints
