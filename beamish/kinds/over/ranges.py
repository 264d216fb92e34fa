"""Accumulators of ranges of rows: each range is put together from blocks of 1, 2, 4, ... rows, which ranges share.

So a range of n rows costs about 2 log2(n) accumulators, whatever the accumulation, and nothing is ever subtracted. Only blocks
that lie within a range are made: a sum that overflows is one that somebody asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from beamish.accumulations.base.accumulation import Accumulation
from beamish.kernels.buffers import Ints
from beamish.kernels.groups import Groups

State = list[pa.Array]


def combine_ranges(  # noqa: PLR0917 - rows, ranges, and what comes before
    of: Accumulation, lift: Callable[[Ints], State], first: Ints, last: Ints, before: State | None, before_at: Ints
) -> State:
    """The accumulator of each range.

    Args:
        of: the accumulation.
        lift: gives the accumulators of rows, by their positions, ascending.
        first, last: int64[n], the positions of the first row of each range, and of the one after its last.
        before: accumulators that come before the rows of a range; None: nothing does.
        before_at: int64[n], the index of each range's; -1: nothing comes before.
    """
    if not len(first):
        return lift(first)
    left, right = blocks_of(first, last)
    needed = _needed([np.concatenate([one[1], other[1]]) for one, other in zip(left, right, strict=True)])
    levels = [lift(needed[0])]
    for blocks, below in zip(needed[1:], needed[:-1], strict=True):
        children = np.searchsorted(below, np.concatenate([2 * blocks, 2 * blocks + 1]))
        each = Groups.each(len(blocks))
        levels.append(of.combine(each.followed_by(each), _taken(levels[-1], children)))
    queries: list[Ints] = []
    parts: list[State] = []
    if before is not None:
        has = np.flatnonzero(before_at >= 0)
        queries.append(has)
        parts.append(_taken(before, before_at[has]))
    ordered = [*enumerate(left), *reversed(list(enumerate(right)))]
    for level, (query, block) in ordered:
        if len(query):
            queries.append(query)
            parts.append(_taken(levels[level], np.searchsorted(needed[level], block)))
    state = [pa.concat_arrays(list(columns)) for columns in zip(*parts, strict=True)]
    return of.combine(Groups(np.concatenate(queries), len(first)), state)


def blocks_of(first: Ints, last: Ints) -> tuple[list[tuple[Ints, Ints]], list[tuple[Ints, Ints]]]:
    """The blocks of ranges: per level, which has blocks of twice the rows of the one before, pairs of range and block.

    In the order of rows a range has the first ones level by level, then the others from the last level to the first.
    """
    left: list[tuple[Ints, Ints]] = []
    right: list[tuple[Ints, Ints]] = []
    query, begin, end = np.arange(len(first), dtype=np.int64), first, last
    while True:
        is_open = begin < end
        query, begin, end = query[is_open], begin[is_open], end[is_open]
        if not len(query):
            return left, right
        odd = (begin & 1).astype(bool)
        left.append((query[odd], begin[odd]))
        begin = begin + odd
        odd = (end & 1).astype(bool) & (begin < end)
        right.append((query[odd], end[odd] - 1))
        begin, end = begin >> 1, end >> 1


def _needed(picked: Sequence[Ints]) -> list[Ints]:
    """Per level the blocks that are picked, or from which picked ones of higher levels are made; ascending."""
    needed: list[Ints] = []
    above = np.empty(0, np.int64)
    for blocks in reversed(picked):
        above = np.unique(np.concatenate([blocks, 2 * above, 2 * above + 1]))
        needed.append(above)
    return needed[::-1]


def _taken(state: State, at: Ints) -> State:
    return [column.take(pa.array(at)) for column in state]
