"""The stored cells of the grid that have rows, and the gaps between them.

columns (one entry per key and cell; ``_us``: int64, microseconds since the epoch):
    cell_us             the start of the cell
    first_us, last_us   the times of its first row and its last; among rows of one time by their values
    due_us              the watermark at which a row is filled after it, or it is dropped
cells: its key as ``key.<name>``, and of the columns that filled rows take ``last.<name>`` of its last row, with ``by="linear"`` also
``first.<name>`` of its first.

A gap lies between two consecutive cells of a key, or after the last one. So the rows filled in a step are those of the gaps that
changed, and of the others those that the watermark has passed since the step before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.stored import Store
from beamish.instants import EARLIEST_US, END_OF_TIME_US, LATEST_US
from beamish.kernels.buffers import Flags, Ints, numbers, pick, valid
from beamish.kernels.codes import factorize_rows, factorize_tuples, factorize_values
from beamish.kernels.order import sort_order, value_keys, value_ranks
from beamish.kinds.gaps.option import FillBy
from beamish.kinds.gaps.plan import GapsPlan
from beamish.tables.records import (
    DUE,
    NOWHERE,
    Records,
    RecordTable,
    SegmentedRecords,
    cells_of_keys,
    keyed_layout,
    keyed_schema,
    parts_of_keys,
    record_table,
)
from beamish.tables.segments import SegmentStore
from beamish.triggers.trigger import NEVER_US
from beamish.watermarks import NO_WATERMARK_US

NAME = "cells"


@attrs.frozen(eq=False)
class Cells(Records):
    """Cells of the grid that have rows."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        "cell_us": ("int64", 0),
        "first_us": ("int64", 0),
        "last_us": ("int64", 0),
        "due_us": ("int64", NEVER_US),
    }

    @property
    def by_key(self) -> pa.Table:
        """The cells of keys."""
        return self.cells.select([name for name in self.cells.schema.names if name.partition(".")[0] == "key"])


class GapCells(SegmentedRecords[Cells]):
    """The loaded cells of a shard, in segments by a hash of their key."""

    def __init__(self, none: Cells, store: Store) -> None:
        super().__init__(SegmentStore(store, keyed_layout(NAME)), none)

    def load_keys(self, keys: pa.Table) -> None:
        """Load the cells of keys."""
        self.load(np.unique(parts_of_keys(keys)).tolist())

    def load_due(self, watermark_us: int) -> None:
        """Load the segments in which something is due."""
        self.load_where(self.segments.index[DUE] <= watermark_us)

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which something is due."""
        return min(self.segments.index[DUE].tolist(), default=None)

    def save(self, watermark_us: int) -> None:
        self.write_back(
            lambda cells: parts_of_keys(cells.by_key),
            lambda cells: np.ones(len(cells), dtype=bool),
            lambda columns, runs: {DUE: runs.least(columns["due_us"])},
        )


def cells_table(plan: GapsPlan) -> RecordTable[GapCells]:
    """The table of cells."""
    none = no_cells(plan)
    return record_table(
        keyed_layout(NAME), none, keyed_schema(plan.key_schema).names, lambda store: GapCells(none, store)
    )


def no_cells(plan: GapsPlan) -> Cells:
    """An empty table of cells."""
    sides = [side for side in ("first", "last") if side == "last" or plan.options.by is FillBy.LINEAR]
    taken = [pa.field(f"{side}.{name}", plan.row_schema.field(name).type) for side in sides for name in plan.carried]
    return Cells.none(pa.schema([*cells_of_keys(plan.key_schema), *taken]))


def cells_of_rows(plan: GapsPlan, keys: pa.Table, rows: pa.Table, time_us: Ints) -> Cells:
    """Each row as a cell of its own.

    Args:
        plan: of the stage.
        keys: n rows, the cells of keys.
        rows: n rows of output.
        time_us: int64[n], their event times.
    """
    none = no_cells(plan)
    columns = dict(zip(keys.schema.names, keys.columns, strict=True))
    columns |= {name: rows[name.partition(".")[2]] for name in none.cells.schema.names if name not in columns}
    cells = pa.table([columns[name] for name in none.cells.schema.names], schema=none.cells.schema).combine_chunks()
    return Cells.new(cells, cell_us=plan.options.cell_us(time_us), first_us=time_us, last_us=time_us)


def merge(cells: Cells) -> Cells:
    """Cells with their first and last rows, one per key and cell; among rows of one time the values decide."""
    groups = factorize_tuples(
        [factorize_rows(cells.by_key.columns, len(cells)), factorize_values(cells["cell_us"])], len(cells)
    )
    first = sort_order([groups.of, cells["first_us"], *value_keys(cells.named("first."))])
    last = sort_order([groups.of, cells["last_us"], *value_keys(cells.named("last."))])
    first = first[np.searchsorted(groups.of[first], np.arange(groups.count), side="left")]
    last = last[np.searchsorted(groups.of[last], np.arange(groups.count), side="right") - 1]
    names = cells.cells.schema.names
    columns = [
        cells.cells[name].combine_chunks().take(pa.array(first if name.startswith("first.") else last))
        for name in names
    ]
    return Cells.new(
        pa.table(columns, schema=cells.cells.schema),
        cell_us=cells["cell_us"][last],
        first_us=cells["first_us"][first],
        last_us=cells["last_us"][last],
    )


@attrs.frozen(eq=False)
class Gaps:
    """The gaps after cells, at a watermark; sorted by key and cell.

    Attributes:
        at: int64[n], the indices of the cells in memory.
        key: int64[n], a number of the key of each.
        next: int64[n], the index of the next cell of the key; NOWHERE: none.
        lo_us, hi_us: int64[n], the first cell without rows after it, and the last that is filled; before ``lo_us``: none.
    """

    at: Ints
    key: Ints
    next: Ints
    lo_us: Ints
    hi_us: Ints


def gaps(plan: GapsPlan, cells: Cells, key: Ints, alive: Flags, watermark_us: int) -> Gaps:
    """The gaps between cells.

    Args:
        plan: of the stage.
        cells: in memory.
        key: int64, one per cell: a number of its key.
        alive: bool, one per cell: whether it is one of those.
        watermark_us: the watermark, microseconds.
    """
    options, step_us = plan.options, plan.options.step.us
    at = np.flatnonzero(alive)
    at = at[np.lexsort((cells["cell_us"][at], key[at]))]
    cell_us, last_us = cells["cell_us"][at], cells["last_us"][at]
    follows = key[at][1:] == key[at][:-1]
    next_ = np.append(np.where(follows, at[1:], NOWHERE), np.full(min(len(at), 1), NOWHERE))
    has_next = next_ != NOWHERE
    next_cell_us = np.where(has_next, cells["cell_us"][next_], END_OF_TIME_US)
    lo_us = cell_us + step_us
    hi_us = np.minimum(options.cell_us(np.minimum(last_us + options.within.us, LATEST_US)), next_cell_us - step_us)
    if watermark_us == NO_WATERMARK_US:
        return Gaps(at, key[at], next_, lo_us, lo_us - step_us)
    if options.by is FillBy.LINEAR:
        reaches = has_next & (cells["first_us"][next_] - last_us <= options.within.us)
        hi_us = np.where(reaches & (next_cell_us + step_us <= watermark_us), hi_us, lo_us - step_us)
    elif watermark_us != END_OF_TIME_US:
        hi_us = np.minimum(hi_us, options.cell_us(np.array(max(watermark_us - step_us, EARLIEST_US - 1))))
    return Gaps(at, key[at], next_, lo_us, np.maximum(hi_us, lo_us - step_us))


@attrs.frozen(eq=False)
class Filled:
    """Filled rows.

    Attributes:
        key: int64[n], a number of the key of each.
        time_us: int64[n], their event times.
        after: int64[n], the index of the cell before it.
        before: int64[n], the index of the cell after it; NOWHERE: none.
    """

    key: Ints
    time_us: Ints
    after: Ints
    before: Ints

    @classmethod
    def of(cls, gaps: Gaps, which: Flags, since_us: Ints, step_us: int) -> Filled:
        """The rows of some gaps, each from a cell on: int64[n], microseconds."""
        own = np.flatnonzero(which)
        count = np.maximum((gaps.hi_us[own] - since_us[own]) // step_us + 1, 0)
        row = np.repeat(own, count)
        within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        return cls(gaps.key[row], since_us[row] + within * step_us, gaps.at[row], gaps.next[row])

    def take(self, at: Ints | Flags) -> Filled:
        """A subset."""
        return Filled(self.key[at], self.time_us[at], self.after[at], self.before[at])


def changes(old: Gaps, new: Gaps, step_us: int) -> tuple[Filled, Filled, Filled]:
    """The filled rows of a step: those of changed gaps before it and after it, and the further ones of unchanged gaps."""
    size = int(max(old.at.max(initial=-1), new.at.max(initial=-1))) + 1
    place, next_ = np.full(size, NOWHERE), np.full(size, NOWHERE - 1)
    place[old.at], next_[old.at] = np.arange(len(old.at)), old.next
    same = next_[new.at] == new.next
    kept = np.zeros(size, dtype=bool)
    kept[new.at[same]] = True
    since_us = new.lo_us.copy()
    since_us[same] = old.hi_us[place[new.at[same]]] + step_us
    return (
        Filled.of(old, ~kept[old.at], old.lo_us, step_us),
        Filled.of(new, ~same, new.lo_us, step_us),
        Filled.of(new, same, since_us, step_us),
    )


def values_of(plan: GapsPlan, cells: Cells, filled: Filled) -> dict[str, pa.Array]:
    """The columns that filled rows take from others."""
    last = {name: pick(cells.cells[f"last.{name}"].combine_chunks(), filled.after) for name in plan.carried}
    if plan.options.by is not FillBy.LINEAR:
        return last
    since_us, until_us = cells["last_us"][filled.after], cells["first_us"][filled.before]
    share = (filled.time_us - since_us) / np.maximum(until_us - since_us, 1)
    columns = {}
    for name, left in last.items():
        right = pick(cells.cells[f"first.{name}"].combine_chunks(), filled.before)
        present = _present(left) & _present(right)
        between = numbers(left) + (numbers(right) - numbers(left)) * share
        columns[name] = pa.array(between, mask=~present)
    return columns


def _present(column: pa.Array) -> Flags:
    present = valid(column)
    return np.ones(len(column), dtype=bool) if present is None else present


def net(old: Filled, new: Filled, values: Sequence[pa.Array]) -> tuple[Flags, Flags, Flags, Flags]:
    """Compare the rows of changed gaps before and after a step.

    Args:
        old, new: the rows.
        values: of both, the old ones first.

    Returns:
        which old rows are retracted, which new ones are emitted; and which of both replace each other.
    """
    count = len(old.key) + len(new.key)
    slot = factorize_tuples(
        [factorize_values(np.append(old.key, new.key)), factorize_values(np.append(old.time_us, new.time_us))], count
    ).of
    rank = value_ranks(values, count)
    size, of_old, of_new = int(slot.max(initial=-1)) + 1, slot[: len(old.key)], slot[len(old.key) :]
    twice = np.isin(np.arange(size), of_old) & np.isin(np.arange(size), of_new)
    rank_of = np.full((2, size), NOWHERE)
    rank_of[0, of_old], rank_of[1, of_new] = rank[: len(old.key)], rank[len(old.key) :]
    equal = twice & (rank_of[0] == rank_of[1])
    return ~equal[of_old], ~equal[of_new], twice[of_old], twice[of_new]


def reach_of(plan: GapsPlan, cells: Cells) -> Ints:
    """The last cell that may be filled after each: int64."""
    reach_us: Ints = plan.options.cell_us(np.minimum(cells["last_us"] + plan.options.within.us, LATEST_US))
    return reach_us


def ends_of(plan: GapsPlan, cells: Cells) -> Ints:
    """The watermark at which each is dropped, unless later ones take its place before: int64."""
    ends_us: Ints = plan.settled_us(np.maximum(reach_of(plan, cells), cells["cell_us"]))
    return ends_us


def due_us(plan: GapsPlan, gaps: Gaps, cells: Cells, watermark_us: int) -> Ints:
    """When something is due after each cell: a filled row, or that it is dropped; int64, one per gap."""
    step_us = plan.options.step.us
    reach_us, dropped_us = reach_of(plan, cells)[gaps.at], ends_of(plan, cells)[gaps.at]
    has_next = gaps.next != NOWHERE
    next_cell_us = np.where(has_next, cells["cell_us"][gaps.next], END_OF_TIME_US)
    if plan.options.by is FillBy.LINEAR:
        cell_us = np.minimum(next_cell_us, dropped_us - step_us)
        waits = has_next & (next_cell_us > gaps.lo_us) & (next_cell_us + step_us > watermark_us)
    else:
        cell_us = np.maximum(gaps.hi_us, gaps.lo_us - step_us) + step_us
        waits = cell_us <= np.minimum(reach_us, next_cell_us - step_us)
    due: Ints = np.where(waits, cell_us + step_us, dropped_us)
    return due


def outlived(plan: GapsPlan, gaps: Gaps, cells: Cells, watermark_us: int) -> Flags:
    """Whether a cell is no longer needed: bool, one per gap.

    The gap after it is settled: its end, or the next cell, takes no more rows.
    """
    if watermark_us == NO_WATERMARK_US:
        return np.zeros(len(gaps.at), dtype=bool)
    past: Flags = ends_of(plan, cells)[gaps.at] <= watermark_us
    has_next = gaps.next != NOWHERE
    settled = has_next & (plan.settled_us(np.where(has_next, cells["cell_us"][gaps.next], 0)) <= watermark_us)
    both: Flags = past | settled
    return both
