"""Accumulators of ranges of rows: each range is put together from blocks of 1, 2, 4, ... rows, which ranges share.

So a range of n rows costs about 2 log2(n) accumulators, whatever the accumulation, and nothing is ever subtracted. Only blocks
that lie within a range are made: so a sum overflows only if that of a range does, or a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.accumulations.base.accumulation import Accumulation
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.groups import Groups

State = list[pa.Array]


@attrs.frozen(eq=False)
class Blocks:
    """Blocks of one level.

    Attributes:
        numbers: int64, those that are needed, ascending.
        left, right: pairs of range and block; the blocks by their place in ``numbers``.
        halves: int64, the places in the level below of the first, then of the second halves of the blocks; empty at the lowest.
    """

    numbers: Ints
    left: tuple[Ints, Ints]
    right: tuple[Ints, Ints]
    halves: Ints


@attrs.frozen(eq=False)
class Ranges:
    """Ranges of rows, cut into blocks.

    Attributes:
        count: number of ranges.
        levels: the blocks; those of a level have twice the rows of those of the level below.
    """

    count: int
    levels: Sequence[Blocks]

    @classmethod
    def of(cls, first: Ints, last: Ints) -> Ranges:
        """Cut ranges; none is empty.

        Args:
            first, last: int64[n], the positions of the first row of each range, and of the one after its last.
        """
        left, right = _cut(first, last)
        needed: list[Flags] = []
        size = int(last.max(initial=0)) >> max(len(left) - 1, 0)
        above = np.zeros(0, dtype=bool)
        for one, other in zip(reversed(left), reversed(right), strict=True):
            flags = np.zeros(max(size, 2 * len(above)) + 1, dtype=bool)
            flags[: 2 * len(above)] = np.repeat(above, 2)
            flags[one[1]] = flags[other[1]] = True
            needed.append(flags)
            above, size = flags, 2 * size + 1
        levels: list[Blocks] = []
        below = np.empty(0, np.int64)
        for flags, one, other in zip(reversed(needed), left, right, strict=True):
            numbers, places = np.flatnonzero(flags), np.cumsum(flags) - 1
            halves = below[np.concatenate([2 * numbers, 2 * numbers + 1])] if levels else below
            levels.append(Blocks(numbers, (one[0], places[one[1]]), (other[0], places[other[1]]), halves))
            below = places
        return cls(len(first), levels)

    def combine(self, of: Accumulation, lift: Callable[[Ints], State], before: State | None, before_at: Ints) -> State:
        """The accumulator of each range.

        Args:
            of: the accumulation.
            lift: gives the accumulators of rows, by their positions, ascending.
            before: accumulators that come before the rows of a range; None: nothing does.
            before_at: int64, one per range: the index of its own; -1: nothing comes before.
        """
        if not self.count:
            return lift(np.empty(0, np.int64))
        made = [lift(self.levels[0].numbers)]
        for blocks in self.levels[1:]:
            each = Groups.each(len(blocks.numbers))
            made.append(of.combine(each.followed_by(each), _taken(made[-1], blocks.halves)))
        parts: list[tuple[Ints, State]] = []
        if before is not None:
            has = np.flatnonzero(before_at >= 0)
            parts.append((has, _taken(before, before_at[has])))
        # In the order of rows a range has its left blocks level by level, then the others from the highest level down.
        ordered = [(blocks.left, state) for blocks, state in zip(self.levels, made, strict=True)]
        ordered += [(blocks.right, state) for blocks, state in reversed(list(zip(self.levels, made, strict=True)))]
        parts += [(ranges, _taken(state, at)) for (ranges, at), state in ordered if len(ranges)]
        state = [pa.concat_arrays(list(columns)) for columns in zip(*(state for _, state in parts), strict=True)]
        return of.combine(Groups(np.concatenate([ranges for ranges, _ in parts]), self.count), state)


def _cut(first: Ints, last: Ints) -> tuple[list[tuple[Ints, Ints]], list[tuple[Ints, Ints]]]:
    """Per level pairs of range and block number: at the left edges of ranges, and at the right ones."""
    left: list[tuple[Ints, Ints]] = []
    right: list[tuple[Ints, Ints]] = []
    ranges, begin, end = np.arange(len(first), dtype=np.int64), first, last
    while True:
        is_open = begin < end
        if not is_open.all():
            ranges, begin, end = ranges[is_open], begin[is_open], end[is_open]
        if not len(ranges):
            return left, right
        odd = (begin & 1).astype(bool)
        left.append((ranges[odd], begin[odd]))
        begin = begin + odd
        odd = (end & 1).astype(bool) & (begin < end)
        right.append((ranges[odd], end[odd] - 1))
        begin, end = begin >> 1, end >> 1


def _taken(state: State, at: Ints) -> State:
    places = pa.array(at)
    return [column.take(places) for column in state]
