"""Windowed joins: the rows of a merge's inputs that share key and window, side by side.

How the rows are kept is in adapters/gathered.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from beamish.accumulations.accumulation import Accumulation
from beamish.accumulations.adapters.gathered import Gathered, Pairs, Side, side_of
from beamish.accumulations.adapters.one_input import MergedInput, OfInputs
from beamish.errors import OptionError


def _check_inputs(where: str, inputs: Sequence[object]) -> None:
    for input_ in inputs:
        if not isinstance(input_, str) or not input_:
            raise OptionError(f"{where}: {input_!r} must be the name of an input of bm.merge")
    if len(set(inputs)) < len(inputs):
        raise OptionError(
            f"{where}: an input is named twice; merge the DataFrame under two names to join it with itself"
        )


class _Gathering(OfInputs):
    """What the joins share: they keep the rows of the inputs they name."""

    __slots__ = ()

    def bind(self, name: str, inputs: Mapping[str, MergedInput]) -> Accumulation:
        return Gathered(self, self._sides(name, inputs))

    def _sides(self, name: str, inputs: Mapping[str, MergedInput]) -> tuple[Side, ...]:
        return tuple(side_of(f"accumulate({name}={self!r})", inputs[input_]) for input_ in self.names_of_inputs)


@attrs.frozen(init=False, repr=False)
class CoGroup(_Gathering):
    """The rows of each input, by key and window (Beam: ``CoGroupByKey``).

    The rows of an input are in the order of event times, those of one time in Spark's sort order. The state holds
    every row: it grows with the rows of the window.

    Args:
        inputs: the names of one or more inputs of the merge.

    Returns:
        struct of one array per input, empty if it has no rows. An item is a struct of the row's columns but for
        those the input is keyed by.

    Raises:
        OptionError: no input, or one that is no name, or twice.
        ColumnError: a column's type has no order (maps).

    Example:
        >>> from beamish.accumulations import CoGroup
        >>> CoGroup("orders", "clicks")
        CoGroup('orders', 'clicks')
    """

    names: tuple[str, ...]

    def __init__(self, *inputs: str) -> None:
        if not inputs:
            raise OptionError("CoGroup(): needs the name of at least one input, such as CoGroup('orders', 'clicks')")
        _check_inputs(f"CoGroup{inputs!r}", inputs)
        self.__attrs_init__(inputs)

    def __repr__(self) -> str:
        return f"CoGroup({', '.join(map(repr, self.names))})"

    @property
    def names_of_inputs(self) -> tuple[str, ...]:
        return self.names


@attrs.frozen
class _Join(_Gathering):
    left: str
    right: str

    explodes: ClassVar[bool] = True
    keeps_left: ClassVar[bool] = False
    """Whether left rows without a match come out, with a null for the right one."""
    keeps_right: ClassVar[bool] = False

    def __attrs_post_init__(self) -> None:
        _check_inputs(repr(self), (self.left, self.right))

    @property
    def names_of_inputs(self) -> tuple[str, ...]:
        return self.left, self.right

    def bind(self, name: str, inputs: Mapping[str, MergedInput]) -> Accumulation:
        return Pairs(self, self._sides(name, inputs), self.keeps_left, self.keeps_right)


@attrs.frozen
class InnerJoin(_Join):
    """One row of output per pair of rows, one of each input, that share key and window.

    Null keys are a key, as everywhere here: they join, other than in SQL. A join is the only accumulation of its
    pipeline. It keeps every row of the window, and gives the product of both sides. A pane without a pair
    gives no row, but has its number.

    Args:
        left: the name of an input of the merge.
        right: the name of another.

    Returns:
        struct of two structs, named after the inputs, of a row's columns but for those the input is keyed by
        (``panes.select("key", "pairs.*")``).

    Raises:
        OptionError: an input is no name, or the same twice.
        ColumnError: a column's type has no order (maps).
    """


@attrs.frozen
class LeftOuterJoin(_Join):
    """As ``InnerJoin``, and one row with a null right side per left row of a window without right rows.

    With early panes in accumulating-and-retracting mode it says "no match yet" early, and takes it back by a
    retraction when the match comes; where only the last pane fires there are no such rows.

    Args:
        left: the name of an input of the merge.
        right: the name of another.

    Returns:
        as ``InnerJoin``; the right side may be null.

    Raises:
        OptionError: an input is no name, or the same twice.
        ColumnError: a column's type has no order (maps).
    """

    keeps_left = True


@attrs.frozen
class RightOuterJoin(_Join):
    """As ``LeftOuterJoin``, for right rows without a left one.

    Args:
        left: the name of an input of the merge.
        right: the name of another.

    Returns:
        as ``InnerJoin``; the left side may be null.

    Raises:
        OptionError: an input is no name, or the same twice.
        ColumnError: a column's type has no order (maps).
    """

    keeps_right = True


@attrs.frozen
class FullOuterJoin(_Join):
    """As ``LeftOuterJoin`` and ``RightOuterJoin`` at once.

    Args:
        left: the name of an input of the merge.
        right: the name of another.

    Returns:
        as ``InnerJoin``; either side may be null.

    Raises:
        OptionError: an input is no name, or the same twice.
        ColumnError: a column's type has no order (maps).
    """

    keeps_left = True
    keeps_right = True
