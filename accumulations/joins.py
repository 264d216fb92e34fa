"""Windowed joins: the rows of a merge's inputs that share key and window, side by side.

The state is a list of rows for each input, in the order of event times. A pane's value is the lists; a join makes of
them, where the output is built, a row for each pair. All rows of one key and window belong together, so the pairs are
the product of the two lists, which is computed by index arithmetic over all panes at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.accumulation import Accumulation
from beamish.accumulations.adapters.one_input import MergedInput, OfInputs
from beamish.errors import ColumnError, OptionError
from beamish.kernels.buffers import column_of, flags, list_column, numbers, pick, plain, plain_type, struct_column
from beamish.kernels.grouping import Field
from beamish.kernels.lists import gather_lists, list_lengths, merge_lists
from beamish.kernels.order import Keys, is_orderable, sort_keys
from beamish.kernels.reserved import INPUT

Groups = NDArray[np.int64]
Times = NDArray[np.int64]
Flags = NDArray[np.bool_]


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

    def bound_to(self, name: str, inputs: Mapping[str, MergedInput]) -> Accumulation:
        sides = tuple(_side(f"accumulate({name}={self!r})", inputs[input_]) for input_ in self.names_of_inputs)
        return Pairs(said=self, sides=sides) if isinstance(self, _Join) else Gathered(self, sides)


@attrs.frozen(init=False, repr=False)
class CoGroup(_Gathering):
    """The rows of each input, by key and window (Beam: ``CoGroupByKey``).

    The rows of an input are in the order of event times, those of one time in Spark's sort order. The state holds
    every row: it grows with the rows of the window.

    Args:
        inputs: the names of one or more inputs of the merge.

    Returns:
        struct of an array for each input, empty if it has no rows. An item is a struct of the row's columns but for
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


@attrs.frozen
class InnerJoin(_Join):
    """A row of output for each pair of rows, one of each input, that share key and window.

    Null keys are a key, as everywhere here: they join, other than in SQL. A join is the only accumulation of its
    pipeline. It keeps every row of the window, and gives the product of both sides. A pane in which nothing pairs
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
    """As ``InnerJoin``, and a row with a null right side for each left row of a window without right rows.

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


@attrs.frozen
class Side:
    """An input whose rows are kept.

    Attributes:
        name: of the input.
        number: its number.
        columns: the columns kept, as the merged rows call them.
        fields: the same, as the input itself calls them.
    """

    name: str
    number: int
    columns: tuple[str, ...]
    fields: tuple[str, ...]


def _side(where: str, input_: MergedInput) -> Side:
    fields = tuple(name for name in input_.columns if name not in input_.keys)
    for name in fields:
        if not is_orderable(plain_type(input_.columns[name])):
            raise ColumnError(
                f"{where}: column {name!r} of {input_.name} is {input_.columns[name]}, and must be a type with an order, so "
                "that the rows of a pane have one; drop it, or turn a map into an array with map_entries first"
            )
    return Side(input_.name, input_.number, tuple(map(input_.merged_name, fields)), fields)


@attrs.frozen(repr=False)
class Gathered(Accumulation):
    """Rows of the inputs, kept. Its first input column numbers the input; then come the columns of each side.

    Attributes:
        said: what the pipeline says.
        sides: the inputs, in the order said.
    """

    said: _Gathering
    sides: tuple[Side, ...]

    python: ClassVar[bool] = False

    def __repr__(self) -> str:
        return repr(self.said)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (INPUT, *(column for side in self.sides for column in side.columns))

    @property
    def preaggregates(self) -> bool:
        return False

    def row_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """The type of a row, side by side."""
        return [
            pa.struct([(name, _kept_type(type_)) for name, type_ in zip(side.fields, own, strict=True)])
            for side, own in zip(self.sides, self._by_side(types), strict=True)
        ]

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        rows = self.row_types(types)
        return pa.struct([(side.name, pa.list_(row)) for side, row in zip(self.sides, rows, strict=True)])

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        return tuple(
            Field(pa.list_(pa.struct([("time", pa.int64()), ("row", row)])), None, ()) for row in self.row_types(types)
        )

    def reduce(self, columns: Sequence[pa.Array], event_time_us: Times, group: Groups, groups: int) -> list[pa.Array]:
        which = numbers(columns[0])
        state = []
        for side, values in zip(self.sides, self._by_side(columns), strict=True):
            own = which == side.number
            kept = [plain(column).filter(flags(own)).cast(_kept_type(column.type)) for column in values]
            row = _struct(kept, side.fields, int(own.sum()))
            items = struct_column([column_of(event_time_us[own]), row], ["time", "row"])
            state.append(gather_lists(items, group[own], groups, _keys))
        return state

    def add_rows(
        self, state: Sequence[pa.Array], columns: Sequence[pa.Array], event_time_us: Times, group: Groups, groups: int
    ) -> list[pa.Array]:
        new = self.reduce(columns, event_time_us, group, groups)
        both = [pa.concat_arrays(pair) for pair in zip(state, new, strict=True)]
        return self.combine(np.tile(np.arange(groups, dtype=np.int64), 2), groups, both)

    def combine(self, group: Groups, groups: int, state: Sequence[pa.Array]) -> list[pa.Array]:
        return [merge_lists(lists, group, groups, _keys) for lists in state]

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        lists = [list_column(items.flatten().field("row"), list_lengths(items)) for items in state]
        return struct_column(lists, [side.name for side in self.sides])

    def _by_side(self, columns: Sequence[pa.Array]) -> list[Sequence[pa.Array]]:
        """The columns after the first, side by side."""
        ends = np.cumsum([1, *(len(side.columns) for side in self.sides)]).tolist()
        return [columns[start:end] for start, end in pairwise(ends)]


@attrs.frozen(repr=False)
class Pairs(Gathered):
    """A join: two sides, whose value is kept as the lists and given out as their pairs.

    A list that is in no pair is emptied, so that two values of a window that grows are equal exactly if their pairs
    are.
    """

    said: _Join

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        left, right = (list_lengths(lists) for lists in state)
        shown = (left > 0) & (self.said.keeps_left | (right > 0)), (right > 0) & (self.said.keeps_right | (left > 0))
        lists = [
            _shorten(items.flatten().field("row"), lengths, kept)
            for items, lengths, kept in zip(state, (left, right), shown, strict=True)
        ]
        return struct_column(lists, [side.name for side in self.sides])

    def pair_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """The type of a pair."""
        return pa.struct([(side.name, row) for side, row in zip(self.sides, self.row_types(types), strict=True)])

    def explode(self, values: pa.Array, alone: Flags) -> tuple[NDArray[np.int64], pa.Array]:
        """The pairs of values.

        Args:
            values: one a row of output.
            alone: for each whether it is one row whatever its value, with a null in place of a pair.

        Returns:
            for each pair the number of its value, and the pairs.
        """
        lists = values.flatten()
        left, right = (np.where(alone, 0, list_lengths(side)) for side in lists)
        pairs = np.maximum(left, 1) * np.maximum(right, 1) * ((left > 0) | (right > 0))
        row = np.repeat(np.arange(len(values), dtype=np.int64), np.where(alone, 1, pairs))
        within = np.arange(len(row), dtype=np.int64) - np.searchsorted(row, row)
        right_each = np.maximum(right, 1)[row]
        places = (within // right_each, left), (within % right_each, right)
        columns = []
        for side, (place, lengths) in zip(lists, places, strict=True):
            all_lengths = list_lengths(side)
            starts = np.cumsum(all_lengths) - all_lengths
            columns.append(pick(side.flatten(), np.where(lengths[row] > 0, starts[row] + place, -1)))
        names = [side.name for side in self.sides]
        return row, pa.StructArray.from_arrays(columns, names=names, mask=flags(alone[row]))


def _kept_type(type_: pa.DataType) -> pa.DataType:
    """The type a column is kept in; one of only nulls as a boolean, since Arrow miscounts void fields of structs."""
    return pa.bool_() if pa.types.is_null(type_) else plain_type(type_)


def _keys(items: pa.Array) -> Keys:
    return sort_keys(items)


def _struct(columns: Sequence[pa.Array], names: Sequence[str], rows: int) -> pa.Array:
    """A struct column, also where it has no fields."""
    return struct_column(columns, names) if names else pa.array([{}] * rows, pa.struct([]))


def _shorten(items: pa.Array, lengths: NDArray[np.int64], kept: Flags) -> pa.Array:
    """Lists of items, emptied where they are not kept."""
    if not kept.all():
        items = items.filter(flags(np.repeat(kept, lengths)))
    return list_column(items, np.where(kept, lengths, 0))
