"""Find the items that raise, by bisection, the earlier half first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from beamish.errors import NumericOverflowError, UserFunctionError
from beamish.kernels.arrays import Ints

Raised: TypeAlias = tuple[int, str]
"""An item and its error."""


def without_errors(things: Ints, tried: Callable[[Ints], object]) -> Iterator[Raised]:
    """The items to leave out so that the rest does not raise, each with its error.

    All are tried together; if that raises, first the earlier half (the smaller, for an odd number), then the later half together
    with the rest of the earlier, recursively. An item that raises together with those before it is left out.

    Args:
        things: int64, in order.
        tried: raises if these, in order, raise together.
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
    """The parts that raise by themselves, each with its error; parts are independent.

    Args:
        parts: of items.
        tried: raises if any of the items raise.
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
    """The cause, without the fix."""
    return error.raised or str(error)
