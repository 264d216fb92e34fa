"""CoGroup and joins over merged rows: they keep the rows of the inputs they name; rows that meet within a span (``bm.Within``).

The state is one list of rows per input, in the order of event times. A pane's value is the lists; a join turns them into one row
per pair when the output is built. All rows of one key and window belong together, so the pairs are the product of the two lists,
which is computed by index arithmetic over all panes at once.

Joins of rows at most a span apart (``bm.Within``): a row matches some, not all, rows of the other side. Both sides are in the order of
event times, so the matches of a row are contiguous, and their bounds are found for all rows of all panes at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.accumulation import Accumulation, KeptRows, MergedInput
from beamish.accumulations.base.columnar import Columnar
from beamish.errors import ColumnError
from beamish.kernels.buffers import (
    Flags,
    Ints,
    cast,
    column_of,
    flags,
    list_column,
    list_lengths,
    numbers,
    pick,
    plain_type,
    starts,
    struct_column,
)
from beamish.kernels.column_names import INPUT
from beamish.kernels.groups import Groups, gather_lists, items_of, merge_lists
from beamish.kernels.order import Keys, is_orderable, sort_keys
from beamish.kernels.state_fields import Field


@attrs.frozen
class Side:
    """A stored input.

    Attributes:
        name: of the input.
        number: its number.
        columns: the stored columns, by their names in the merged rows.
        fields: the same, by their names in the input.
    """

    name: str
    number: int
    columns: tuple[str, ...]
    fields: tuple[str, ...]


def side_of(where: str, input_: MergedInput) -> Side:
    """A stored input, without its key columns (ColumnError: a column is not orderable)."""
    fields = tuple(name for name in input_.columns if name not in input_.keys)
    for name in fields:
        if not is_orderable(plain_type(input_.columns[name])):
            raise ColumnError(
                f"{where}: column {name!r} of {input_.name} is {input_.columns[name]}, and must be a type with an order, so "
                "that the rows of a pane have one; drop it, or turn a map into an array with map_entries first"
            )
    return Side(input_.name, input_.number, tuple(map(input_.merged_name, fields)), fields)


MOST_INPUTS = 64
"""How many inputs a merge may have for the rows of the joined ones to be marked."""


def marked(number: Ints, *, visits: Flags, apart: Flags) -> Ints:
    """The numbers of the inputs of rows, with what a join knows of each row in its window.

    Args:
        number: of their inputs.
        visits: which are in a window that is not their own, only to be matched there (``WithinInput``).
        apart: which have no match.
    """
    return np.where(visits, ~number, number + MOST_INPUTS * apart)


@attrs.frozen(repr=False)
class Gathered(Columnar):
    """An accumulation that stores the rows of inputs.

    Its first input column is the number of the input; the columns of each side follow.

    Attributes:
        declared: the accumulation as declared in the pipeline.
        sides: the inputs, in the order declared.
    """

    declared: Accumulation
    sides: tuple[Side, ...]

    def __repr__(self) -> str:
        return repr(self.declared)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (INPUT, *(column for side in self.sides for column in side.columns))

    @property
    def preaggregates(self) -> bool:
        return False

    def row_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """The row type of each side."""
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

    def reduce(self, columns: Sequence[pa.Array], event_time_us: Ints, groups: Groups) -> list[pa.Array]:
        state = []
        for own, row in self.own_rows(columns):
            items = struct_column([column_of(event_time_us[own]), row], ["time", "row"])
            state.append(gather_lists(items, groups[own], _keys))
        return state

    def own_rows(self, columns: Sequence[pa.Array]) -> Iterator[tuple[Flags, pa.Array]]:
        """For each side, which rows belong to it, and these rows as structs."""
        which = numbers(columns[0])
        for side, values in zip(self.sides, self._by_side(columns), strict=True):
            own: Flags = (which == side.number) | (which == ~side.number) | (which == side.number + MOST_INPUTS)
            kept = [cast(column.filter(flags(own)), _kept_type(column.type)) for column in values]
            yield own, _struct(kept, side.fields, int(own.sum()))

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        return [merge_lists(lists, groups, _keys) for lists in state]

    def kept(self, types: Sequence[pa.DataType]) -> Mapping[str, pa.DataType]:
        return {side.name: row for side, row in zip(self.sides, self.row_types(types), strict=True)}

    def kept_rows(self, state: Sequence[pa.Array], types: Sequence[pa.DataType], name: str) -> KeptRows:
        lists = state[[side.name for side in self.sides].index(name)]
        items, of = items_of(lists, Groups.each(len(lists)))
        return numbers(items.field("time")), items.field("row"), of.of

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        lists = [list_column(items.flatten().field("row"), list_lengths(items)) for items in state]
        return struct_column(lists, [side.name for side in self.sides])

    def _by_side(self, columns: Sequence[pa.Array]) -> list[Sequence[pa.Array]]:
        """The columns after the first, per side."""
        ends = np.cumsum([1, *(len(side.columns) for side in self.sides)]).tolist()
        return [columns[start:end] for start, end in pairwise(ends)]


@attrs.frozen(repr=False)
class Pairs(Gathered):
    """A join of two sides: its value is stored as two lists and emitted as pairs.

    The list of an unpaired side is emptied, so that two values of a growing window are equal if and only if their pairs are.

    Attributes:
        keeps_left: whether left rows without a match are emitted, with a null right side.
        keeps_right: whether right rows without a match are emitted, with a null left side.
        apart: whether both are, and rows of a null key have no match.
    """

    keeps_left: bool
    keeps_right: bool
    apart: bool = False

    explodes: ClassVar[bool] = True

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        left, right = (list_lengths(lists) for lists in state)
        kept = (left > 0) & (self.keeps_left | (right > 0)), (right > 0) & (self.keeps_right | (left > 0))
        lists = [
            _shorten(items.flatten().field("row"), lengths, in_pairs)
            for items, lengths, in_pairs in zip(state, (left, right), kept, strict=True)
        ]
        return struct_column(lists, [side.name for side in self.sides])

    def output_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.struct([(side.name, row) for side, row in zip(self.sides, self.row_types(types), strict=True)])

    def explode(self, values: pa.Array, whole: Flags, null_key: Flags) -> tuple[NDArray[np.int64], pa.Array]:
        """The pairs of values (see ``Accumulation.explode``)."""
        lists = values.flatten()
        left, right = (np.where(whole, 0, list_lengths(side)) for side in lists)
        pairs = np.maximum(left, 1) * np.maximum(right, 1) * ((left > 0) | (right > 0))
        apart = null_key & self.apart
        row = np.repeat(
            np.arange(len(values), dtype=np.int64), np.where(whole, 1, np.where(apart, left + right, pairs))
        )
        within = np.arange(len(row), dtype=np.int64) - np.searchsorted(row, row)
        right_each, apart = np.maximum(right, 1)[row], apart[row]
        places = (
            (np.where(apart, within, within // right_each), left[row]),
            (np.where(apart, within - left[row], within % right_each), right[row]),
        )
        columns = []
        for side, (place, length) in zip(lists, places, strict=True):
            first = starts(list_lengths(side))
            there = (place >= 0) & (place < length)
            columns.append(pick(side.flatten(), np.where(there, first[row] + place, -1)))
        names = [side.name for side in self.sides]
        return row, pa.StructArray.from_arrays(columns, names=names, mask=flags(whole[row]))


def _kept_type(type_: pa.DataType) -> pa.DataType:
    """The stored type of a column; a column of only nulls is stored as boolean."""
    return pa.bool_() if pa.types.is_null(type_) else plain_type(type_)


def _keys(items: pa.Array) -> Keys:
    return sort_keys(items)


def _struct(columns: Sequence[pa.Array], names: Sequence[str], rows: int) -> pa.Array:
    """A struct column, also for no fields."""
    return struct_column(columns, names) if names else pa.array([{}] * rows, pa.struct([]))


def _shorten(items: pa.Array, lengths: NDArray[np.int64], kept: Flags) -> pa.Array:
    """Lists of items, emptied where flagged."""
    if not kept.all():
        items = items.filter(flags(np.repeat(kept, lengths)))
    return list_column(items, np.where(kept, lengths, 0))


@attrs.frozen(repr=False, kw_only=True)
class MeetingPairs(Pairs):
    """A join in which a row matches some rows of the other side: those in an interval, or those that fulfil conditions.

    Rows without a match are left out, so that two values of a growing window are equal if and only if their pairs are.

    Attributes:
        meets_us: how far after a left row its earliest and latest matches are, bounds included, microseconds, negative: before it;
            None: at any time.
        conditional: whether rows may have no match by a condition: ``apart`` in the state.
        visited: whether some rows are in the window only to be matched; in the state ``here`` is true for the others, which are
            emitted if unmatched.
        of_left: whether a pair is emitted where its left row is here; otherwise where its right row is.
    """

    meets_us: tuple[int, int] | None
    conditional: bool = False
    visited: bool = False
    of_left: bool = True

    @property
    def _known(self) -> list[str]:
        """The flags of a row in the state."""
        return ["apart"] * self.conditional + ["here"] * self.visited

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        known = [(name, pa.bool_()) for name in self._known]
        items = (pa.struct([("time", pa.int64()), ("row", row), *known]) for row in self.row_types(types))
        return tuple(Field(pa.list_(item), None, ()) for item in items)

    def reduce(self, columns: Sequence[pa.Array], event_time_us: Ints, groups: Groups) -> list[pa.Array]:
        state, which = [], numbers(columns[0])
        known = {"apart": which >= MOST_INPUTS, "here": which >= 0}
        for own, row in self.own_rows(columns):
            parts = {"time": column_of(event_time_us[own]), "row": row}
            parts |= {name: flags(known[name][own]) for name in self._known}
            state.append(gather_lists(struct_column(list(parts.values()), list(parts)), groups[own], _keys))
        return state

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        rows = self.row_types(types)
        apart = [("apart", pa.bool_())] * self.conditional
        items = [pa.list_(pa.struct([("time", pa.int64()), ("row", row), *apart])) for row in rows]
        return pa.struct([(side.name, item) for side, item in zip(self.sides, items, strict=True)])

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        meeting = self._meeting(state)
        kept = (meeting.last > meeting.first) | self.keeps_left, meeting.is_met | self.keeps_right
        kept = self._kept_here(state, meeting) if self.visited else kept
        lists = [
            list_column(
                _without_here(items.flatten().filter(flags(own))),
                Groups.each(len(items)).repeat(list_lengths(items))[own].sizes(),
            )
            for items, own in zip(state, kept, strict=True)
        ]
        return struct_column(lists, [side.name for side in self.sides])

    def explode(self, values: pa.Array, whole: Flags, null_key: Flags) -> tuple[NDArray[np.int64], pa.Array]:
        sides = [side.filter(flags(~whole)) for side in values.flatten()]
        meeting, at = self._meeting(sides, (null_key & self.apart)[~whole]), np.flatnonzero(~whole)
        many = meeting.last - meeting.first
        left = np.repeat(np.arange(len(many)), many)
        right = np.arange(len(left)) - np.repeat(np.cumsum(many) - many, many) + meeting.first[left]
        right = meeting.right[right]
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

    def _kept_here(self, state: Sequence[pa.Array], meeting: _Meeting) -> tuple[Flags, Flags]:
        """Which left and right rows are in pairs that are emitted here, or are here and have no match."""
        left, right = (numbers(side.flatten().field("here")).astype(bool) for side in state)
        has_match = meeting.last > meeting.first
        if self.of_left:
            paired = meeting.only(left).is_met
            return left, paired | (right & ~meeting.is_met)
        there = np.append(0, np.cumsum(right[meeting.right]))
        return (there[meeting.last] > there[meeting.first]) | (left & ~has_match), right

    def _meeting(self, sides: Sequence[pa.Array], apart: Flags | None = None) -> _Meeting:
        """Matches between rows; ``apart``: bool, one per value: whether its rows have none."""
        of_left, of_right = (Groups.each(len(side)).repeat(list_lengths(side)).of for side in sides)
        lefts, rights = (
            np.flatnonzero(~self._apart(side, of, apart)) for side, of in zip(sides, (of_left, of_right), strict=True)
        )
        first, last = np.zeros(len(of_left), np.int64), np.zeros(len(of_left), np.int64)
        if self.meets_us is None:
            first[lefts], last[lefts] = (
                np.searchsorted(of_right[rights], of_left[lefts], side=side) for side in ("left", "right")
            )
        else:
            left, right = (numbers(side.flatten().field("time")) for side in sides)
            earliest_us, latest_us = self.meets_us
            first[lefts], last[lefts] = reach(
                of_left[lefts],
                left[lefts] + earliest_us,
                left[lefts] + latest_us,
                of_right[rights],
                right[rights],
            )
        return _Meeting(first, last, of_left, of_right, rights)

    def _apart(self, side: pa.Array, of: Ints, apart: Flags | None) -> Flags:
        """Which rows of a side have no match: bool; ``of``: the value of each, ``apart``: as in ``_meeting``."""
        alone = np.zeros(len(of), dtype=bool) if apart is None else apart[of]
        return alone | numbers(side.flatten().field("apart")).astype(bool) if self.conditional else alone


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
        first, last: int64, one per left row: its first matching right row, and the one after its last, as places in ``right``.
        of_left, of_right: int64, one per row: the index of its value.
        right: int64, the right rows that may have a match.
    """

    first: Ints
    last: Ints
    of_left: Ints
    of_right: Ints
    right: Ints

    def only(self, left: Flags) -> _Meeting:
        """Those of some left rows."""
        return attrs.evolve(self, first=self.first[left], last=self.last[left], of_left=self.of_left[left])

    @property
    def is_met(self) -> Flags:
        """Whether each right row has a match: bool."""
        reached = np.zeros(len(self.right) + 1, np.int64)
        np.add.at(reached, self.first, 1)
        np.add.at(reached, self.last, -1)
        is_met = np.zeros(len(self.of_right), dtype=bool)
        is_met[self.right] = np.cumsum(reached)[:-1] > 0
        return is_met


def _without_here(items: pa.Array) -> pa.Array:
    """Rows without what only their window knows."""
    names = [field.name for field in items.type if field.name != "here"]
    return struct_column([items.field(name) for name in names], names)
