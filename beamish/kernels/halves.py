"""Which of some things raise, found by halves: what raises as a whole is tried in two parts, the earlier first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from beamish.errors import NumericOverflowError, UserFunctionError
from beamish.kernels.arrays import Ints

Raised: TypeAlias = tuple[int, str]
"""A thing, and what was raised with it."""


def without_errors(things: Ints, tried: Callable[[Ints], object]) -> Iterator[Raised]:
    """The things that are left out, so that what is left does not raise, each with what was raised.

    All are tried together; where that raises, first the earlier half (the smaller, if they are odd in number), then the later one
    beside what is left of it, each in the same way. One that raises beside those before it is left out.

    Args:
        things: int64, in order.
        tried: raises if some of them, in order, raise together.
    """
    taken = things[:0]
    waiting = [things]
    while waiting:
        part = waiting.pop()
        if not len(part):
            continue
        both = np.concatenate([taken, part])
        try:
            tried(both)
        except (UserFunctionError, NumericOverflowError) as error:
            if len(part) == 1:
                yield int(part[0]), what_raised(error)
            else:
                half = len(part) // 2
                waiting += [part[half:], part[:half]]
        else:
            taken = both


def failing(parts: Sequence[Ints], tried: Callable[[Ints], object]) -> Iterator[tuple[Ints, str]]:
    """The parts that raise by themselves, each with what was raised; they have nothing to do with each other.

    Args:
        parts: of things.
        tried: raises if some of the things raise.
    """
    if not len(parts):
        return
    try:
        tried(np.concatenate(parts))
    except (UserFunctionError, NumericOverflowError) as error:
        if len(parts) == 1:
            yield parts[0], what_raised(error)
        else:
            half = len(parts) // 2
            yield from failing(parts[:half], tried)
            yield from failing(parts[half:], tried)


def what_raised(error: UserFunctionError | NumericOverflowError) -> str:
    """What happened, without what to do."""
    return error.raised or str(error)
