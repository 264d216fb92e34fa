"""Joins that emit each pair once (``once=True``): rows stay stored after a pane is emitted.

state (lists, one entry per accumulator)
    left, right     the stored rows, by event time; each a struct of
        time        int64, microseconds since the epoch
        row         the row
        number      int64: identifies it in other windows; where a row may be in several
        event       int64: its event time, or the end of time if it has none; where ``time`` is a row number, and rows are kept
        for a duration
        met         bool: whether it has a match, null: it never has one; for a side whose unmatched rows are emitted
        here        bool: whether the window is its own; where some rows are in it only to be matched
    due             the pairs not emitted yet, in any order: structs of both rows, one of them null for an unmatched row

An accumulator has already paired its own rows. Merging pairs rows of different accumulators: new rows with stored ones, rows of
two merging sessions. No two rows are compared twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.accumulations.base.gathered import MOST_INPUTS, Gathered, reach
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import (
    Flags,
    Ints,
    column_of,
    flags,
    list_column,
    list_lengths,
    numbers,
    pick,
    struct_column,
)
from beamish.kernels.groups import Groups, items_of
from beamish.kernels.order import run_starts, sort_keys, sort_order
from beamish.kernels.state_fields import Field


@attrs.frozen
class Keeps:
    """Retention of one input's rows.

    Attributes:
        gives_alone: whether a row without a match is emitted, with a null other side.
        rows: how many rows, the latest, are kept per key and window; None: all.
        for_us: how far the watermark may pass their event time before they are dropped, microseconds; None: kept as long as their window.
    """

    gives_alone: bool
    rows: int | None = None
    for_us: int | None = None

    def until_us(self, time_us: Ints) -> Ints:
        """The watermark at which rows with these event times are dropped."""
        assert self.for_us is not None  # noqa: S101 - called only if it is set
        return np.minimum(time_us, END_OF_TIME_US - self.for_us) + self.for_us


@attrs.frozen(repr=False)
class PairsOnce(Gathered):
    """A join that emits each pair once; its first input columns are those of ``numbered`` and ``dated``.

    Attributes:
        left, right: retention of each side.
        numbered: whether a row may be in several windows, with the same number in each. Then a pair is emitted in the first group
            that has both rows; groups are numbered in the order of their windows.
        dated: whether windows count rows but retention is a duration: rows are ordered by number and dropped by event time.
        meets_us: how far after a left row its earliest and latest matches are, microseconds, negative: before it; None: all match.
        apart: whether some rows never have a match (``gathered.marked``).
        visited, of_left: as in ``MeetingPairs``.
    """

    left: Keeps
    right: Keeps
    numbered: bool = False
    dated: bool = False
    meets_us: tuple[int, int] | None = None
    apart: bool = False
    visited: bool = False
    of_left: bool = True

    explodes: ClassVar[bool] = True

    @property
    def keeps(self) -> tuple[Keeps, Keeps]:
        """Retention of each side."""
        return self.left, self.right

    @property
    def gives_alone(self) -> bool:
        """Whether unmatched rows are emitted."""
        return self.left.gives_alone or self.right.gives_alone

    @property
    def _known(self) -> list[str]:
        """Additional columns of a row, in the order of the input columns."""
        return ["number"] * self.numbered + ["event"] * self.dated

    @property
    def cuts(self) -> bool:
        """Whether some rows are dropped before their window expires."""
        return any(keeps.rows is not None or keeps.for_us is not None for keeps in self.keeps)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.list_(self.output_type(types))

    def output_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return pa.struct([(side.name, row) for side, row in zip(self.sides, self.row_types(types), strict=True)])

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        kept = [
            pa.struct(
                [
                    ("time", pa.int64()),
                    ("row", row),
                    *([("number", pa.int64())] if self.numbered else []),
                    *([("event", pa.int64())] if self.dated else []),
                    *([("met", pa.bool_())] if keeps.gives_alone else []),
                    *([("here", pa.bool_())] if self.visited else []),
                ]
            )
            for row, keeps in zip(self.row_types(types), self.keeps, strict=True)
        ]
        return tuple(Field(pa.list_(item), None, ()) for item in (*kept, self.output_type(types)))

    def reduce(self, columns: Sequence[pa.Array], event_time_us: Ints, groups: Groups) -> list[pa.Array]:
        known = {name: columns[at] for at, name in enumerate(self._known)}
        columns = columns[len(known) :]
        which, sides = numbers(columns[0]), []
        for keeps, (own, row) in zip(self.keeps, self.own_rows(columns), strict=True):
            parts = {"time": column_of(event_time_us[own]), "row": row}
            parts |= {name: column.filter(flags(own)) for name, column in known.items()}
            if keeps.gives_alone:
                parts["met"] = pa.array(np.zeros(len(row), dtype=bool), mask=which[own] >= MOST_INPUTS)
            if self.visited:
                parts["here"] = flags(which[own] >= 0)
            items = struct_column(list(parts.values()), list(parts))
            sides.append(_Rows.in_order(items, groups[own], np.zeros(len(items), np.int64)))
        left, right = sides
        nothing = self._pairs(left, right, np.empty(0, np.int64), np.empty(0, np.int64)), groups[:0]
        return self._with_pairs(left, right, self._meet(left, right, left.groups.of, right.groups.of), nothing)

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        place = _place_in_group(groups)
        left, right = (_Rows.of_lists(lists, groups, place) for lists in state[:2])
        met = [np.empty((0, 2), np.int64)]
        # Pairwise rounds: in round n those are matched whose positions differ in bit n and agree in the higher bits.
        for bit in range(int(place.max(initial=0)).bit_length()):
            pairs_of_places = (int(place.max()) >> (bit + 1)) + 1
            for first, second in ((0, 1), (1, 0)):
                of = (
                    np.where(
                        side.place >> bit & 1 == odd, side.groups.of * pairs_of_places + (side.place >> (bit + 1)), -1
                    )
                    for side, odd in ((left, first), (right, second))
                )
                met.append(np.stack(self._meet(left, right, *of), axis=1))
        i, j = np.concatenate(met).T
        return self._with_pairs(left, right, (i, j), items_of(state[2], groups))

    def _meet(self, left: _Rows, right: _Rows, of_left: Ints, of_right: Ints) -> tuple[Ints, Ints]:
        """Match rows of the same group, by number; rows of group -1 match none.

        Returns:
            int64, one per pair: a left and a right row.
        """
        lefts, rights = np.flatnonzero((of_left >= 0) & left.may_meet), np.flatnonzero((of_right >= 0) & right.may_meet)
        rights = rights[np.argsort(of_right[rights], kind="stable")]
        of_left, of_right = of_left[lefts], of_right[rights]
        if self.meets_us is None:
            first, last = (np.searchsorted(of_right, of_left, side=side) for side in ("left", "right"))
        else:
            earliest_us, latest_us = self.meets_us
            time_us = left.time_us[lefts]
            first, last = reach(of_left, time_us + earliest_us, time_us + latest_us, of_right, right.time_us[rights])
        many = last - first
        within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        return np.repeat(lefts, many), rights[np.repeat(first, many) + within]

    def _with_pairs(
        self, left: _Rows, right: _Rows, made: tuple[Ints, Ints], due: tuple[pa.Array, Groups]
    ) -> list[pa.Array]:
        """The state of rows, of ``made`` (new) pairs of them, and of pairs ``due`` before."""
        i, j = made
        if self.numbered:
            keys = [left.number[i], right.number[j], left.groups.of[i]]
            order = sort_order(keys)
            first = order[run_starts([key[order] for key in keys[:2]])]
            i, j = i[first], j[first]
        own = (left.here[i] if self.of_left else right.here[j]) if self.visited else slice(None)
        pairs = _more_items(*due, self._pairs(left, right, i[own], j[own]), left.groups[i[own]])
        return [left.lists(i), right.lists(j), pairs]

    def _pairs(self, left: _Rows, right: _Rows, i: Ints, j: Ints) -> pa.Array:
        """Pairs of rows; -1: no row."""
        return struct_column([pick(left.row, i), pick(right.row, j)], [side.name for side in self.sides])

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return state[2]

    def explode(self, values: pa.Array, whole: Flags, null_key: Flags) -> tuple[NDArray[np.int64], pa.Array]:
        row = np.repeat(np.arange(len(values), dtype=np.int64), np.where(whole, 1, list_lengths(values)))
        of_pairs = ~whole[row]
        return row, pick(values.flatten(), np.where(of_pairs, np.cumsum(of_pairs) - 1, -1))

    def after_pane(self, state: Sequence[pa.Array]) -> list[pa.Array]:
        """Accumulators after their pane is emitted."""
        left, right, due = state
        return [left, right, list_column(due.flatten()[:0], np.zeros(len(due), np.int64))]

    def has_due(self, state: Sequence[pa.Array]) -> Flags:
        """Whether a pair is due: bool, one per accumulator."""
        due: Flags = list_lengths(state[2]) > 0
        return due

    def of_last_pane(self, state: Sequence[pa.Array]) -> list[pa.Array]:
        """Accumulators in which unmatched rows become due, since their last pane is emitted."""
        return self._without(state, [np.ones(len(lists.flatten()), dtype=bool) for lists in state[:2]])[0]

    def cut(self, state: Sequence[pa.Array], watermark_us: int) -> tuple[list[pa.Array], Ints]:
        """Drop rows that are past retention; unmatched ones become due.

        Args:
            state: the state's columns.
            watermark_us: the watermark.

        Returns:
            the state's columns, and the number of dropped unmatched rows: int64, one per accumulator.
        """
        gone = []
        for keeps, lists in zip(self.keeps, state[:2], strict=True):
            rows = _Rows.of_lists(lists, Groups.each(len(lists)), np.zeros(len(lists), np.int64))
            goes = np.zeros(len(rows.items), dtype=bool)
            if keeps.for_us is not None:
                goes |= keeps.until_us(_kept_us(rows.items)) <= watermark_us
            if keeps.rows is not None:
                goes |= rows.places_from_latest() >= keeps.rows
            gone.append(goes)
        if not any(goes.any() for goes in gone):
            return list(state), np.zeros(len(state[0]), np.int64)
        return self._without(state, gone)

    def kept_until_us(self, state: Sequence[pa.Array]) -> Ints:
        """The least watermark at which a row is dropped: int64, one per accumulator, the maximum without any."""
        least = np.full(len(state[0]), np.iinfo(np.int64).max)
        for keeps, lists in zip(self.keeps, state[:2], strict=True):
            if keeps.for_us is not None:
                items, of = items_of(lists, Groups.each(len(lists)))
                least = np.minimum(least, of.least(keeps.until_us(_kept_us(items))))
        return least

    def _without(self, state: Sequence[pa.Array], gone: Sequence[Flags]) -> tuple[list[pa.Array], Ints]:
        """The state without some rows, with the unmatched ones among them due, and the number of these."""
        count = len(state[0])
        none = np.zeros(count, np.int64)
        left, right = (_Rows.of_lists(lists, Groups.each(count), none) for lists in state[:2])
        i, j = (
            np.flatnonzero(goes & ~rows.met & rows.here) if keeps.gives_alone else none[:0]
            for keeps, rows, goes in zip(self.keeps, (left, right), gone, strict=True)
        )
        alone = self._pairs(left, right, np.append(i, np.full(len(j), -1)), np.append(np.full(len(i), -1), j))
        of_alone = Groups(np.append(left.groups.of[i], right.groups.of[j]), count)
        kept = [rows.only(~goes).lists() for rows, goes in zip((left, right), gone, strict=True)]
        return [*kept, _more_items(*items_of(state[2], Groups.each(count)), alone, of_alone)], of_alone.sizes()


@attrs.frozen(eq=False)
class _Rows:
    """Rows of one side, by group and event time.

    Attributes:
        items: as stored.
        groups: the group of each.
        place: int64, one per row: the position of its accumulator in the group.
    """

    items: pa.Array
    groups: Groups
    place: Ints

    @classmethod
    def in_order(cls, items: pa.Array, groups: Groups, place: Ints) -> _Rows:
        """Rows in any order."""
        order = sort_order([groups.of, numbers(items.field("time"))])
        if bool((order == np.arange(len(order))).all()):
            return cls(items, groups, place)
        return cls(items.take(column_of(order)), groups[order], place[order])

    @classmethod
    def of_lists(cls, lists: pa.Array, groups: Groups, place: Ints) -> _Rows:
        """The rows of accumulators, each with the position of its accumulator in the group."""
        items, of = items_of(lists, groups)
        return cls.in_order(items, of, np.repeat(place, list_lengths(lists)))

    @property
    def row(self) -> pa.Array:
        return self.items.field("row")

    @property
    def time_us(self) -> Ints:
        return numbers(self.items.field("time"))

    @property
    def number(self) -> Ints:
        return numbers(self.items.field("number"))

    @property
    def met(self) -> Flags:
        met: Flags = numbers(pc.fill_null(self.items.field("met"), False)).astype(bool)  # noqa: FBT003
        return met

    @property
    def here(self) -> Flags:
        """Whether the window is a row's own."""
        if "here" not in [field.name for field in self.items.type]:
            return np.ones(len(self.items), dtype=bool)
        return numbers(self.items.field("here")).astype(bool)

    @property
    def may_meet(self) -> Flags:
        """Whether a row may have a match."""
        if "met" not in [field.name for field in self.items.type]:
            return np.ones(len(self.items), dtype=bool)
        return numbers(self.items.field("met").is_valid()).astype(bool)

    def only(self, kept: Flags) -> _Rows:
        """A subset."""
        return _Rows(self.items.filter(flags(kept)), self.groups[kept], self.place[kept])

    def places_from_latest(self) -> Ints:
        """Position of each in its group from the latest on, by (event time, row); among equals, matched ones come later."""
        met = [self.met.astype(np.int64)] if "met" in [field.name for field in self.items.type] else []
        order = sort_order([self.groups.of, ~self.time_us, *(~key for key in sort_keys(self.row)), *met])
        places = np.empty(len(order), np.int64)
        places[order] = self.groups[order].positions()
        return places

    def lists(self, met: Ints | None = None) -> pa.Array:
        """Rows as a state column, one entry per group; ``met``: rows that just got a match."""
        items = self.items
        names = [field.name for field in items.type]
        if met is not None and "met" in names:
            is_met = self.met
            is_met[met] = True
            marked = pa.array(is_met, mask=~self.may_meet)
            parts = [marked if name == "met" else items.field(name) for name in names]
            items = struct_column(parts, names)
        return list_column(items, self.groups.sizes())


def _kept_us(items: pa.Array) -> Ints:
    """The event times that retention applies to: int64, one per row."""
    dated = "event" in [field.name for field in items.type]
    return numbers(items.field("event" if dated else "time"))


def _more_items(items: pa.Array, of: Groups, more: pa.Array, of_more: Groups) -> pa.Array:
    """Concatenate lists group by group."""
    of = of.followed_by(of_more)
    in_order = column_of(np.argsort(of.of, kind="stable"))
    return list_column(pa.concat_arrays([items, more]).take(in_order), of.sizes())


def _place_in_group(groups: Groups) -> Ints:
    """Position of each entry within its group."""
    order = np.argsort(groups.of, kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = groups[order].positions()
    return places
