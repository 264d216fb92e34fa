"""Rows of output where the values of a key differ from those before: panes, and retractions of what they replace."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.updates import (
    EARLY,
    ON_TIME,
    PANE_KIND,
    RETRACTION_KIND,
    TIMESTAMP,
    Updates,
    make_block,
    sort_blocks,
)
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.codes import factorize_tuples, factorize_values
from beamish.kernels.order import run_starts, value_ranks
from beamish.kinds.rolling.looking import Looked
from beamish.kinds.rolling.plan import TIME, RollingPlan
from beamish.kinds.rolling.tables import Rows
from beamish.kinds.rolling.values import Values

NOWHERE = -1
"""No row."""


@attrs.frozen(eq=False)
class Emitted:
    """Rows to emit, in order of key and boundary.

    Attributes:
        place: int64[n]: which of the pairs that are looked at.
        emits: bool[n]: whether there is a pane; else only a retraction.
        index, later: int64[n]: how many panes of its key, or of its key and boundary, were before; and how many of them not EARLY.
        retracts: bool[n]: whether the row before is retracted.
        before: int64[n]: the row that is retracted: an index among the emitted rows in memory; or NOWHERE: the one before in this list.
        replaces: bool[n]: whether the pane replaces one.
    """

    place: Ints
    emits: Flags
    index: Ints
    later: Ints
    retracts: Flags
    before: Ints
    replaces: Flags


def changed_rows(
    plan: RollingPlan, looked: Looked, values: Values, rows: Rows, watermark_us: int
) -> tuple[Ints, Rows, Updates]:
    """The rows that are emitted.

    Args:
        plan: of the stage.
        looked: what is looked at.
        values: the values there.
        rows: the emitted rows in memory.
        watermark_us: of this part of the step.

    Returns:
        the emitted rows that are replaced, by their indices in memory; those that replace them; the updates.
    """
    if plan.history:
        emitted, there = _of_history(plan, looked, values, rows)
    else:
        emitted, there = _of_current(plan, looked, values, rows, watermark_us)
    updates = _updates(plan, looked, values, rows, emitted)
    place = emitted.place
    is_last_of_key = np.ones(len(place), bool)
    if not plan.history and len(place):
        is_last_of_key[:-1] = looked.code[place[1:]] != looked.code[place[:-1]]
    kept = np.flatnonzero(is_last_of_key)
    at = place[kept]
    cells = [*looked.keys.take(pa.array(looked.code[at])).columns, *values.table.take(pa.array(at)).columns]
    emits = emitted.emits[kept]
    new = Rows.new(
        pa.table(cells, schema=plan.row_cells).combine_chunks(),
        time_us=looked.boundary_us[at],
        panes=emitted.index[kept] + emits,
        later_panes=emitted.later[kept] + (emits & (looked.timing[at] != EARLY)),
        timing=looked.timing[at],
        live=emits,
        is_last=~values.some[at],
    )
    return there[there != NOWHERE], new, updates


def _of_current(
    plan: RollingPlan, looked: Looked, values: Values, rows: Rows, watermark_us: int
) -> tuple[Emitted, Ints]:
    """With one row per key; and the row that each replaces in memory."""
    code, some = looked.code, values.some
    row_of = np.full(looked.keys.num_rows, NOWHERE)
    row_of[looked.of_rows] = looked.rows_at
    row = row_of[code]
    is_known = row != NOWHERE
    over = is_known & (rows_of(rows, "is_last", row) | ~rows_of(rows, "live", row))
    first = run_starts([code])
    changed = _changed(values, rows, first, np.where(is_known & ~over, row, NOWHERE))
    place = np.flatnonzero(changed)
    code, some, row, is_known, over = code[place], some[place], row[place], is_known[place], over[place]
    boundary_us = looked.boundary_us[place]
    first = run_starts([code])
    emits = some | (plan.rolling.empty == "emit")
    now_us = np.where(looked.timing[place] == ON_TIME, boundary_us, watermark_us)
    ended_us = np.where(first, rows_of(rows, "time_us", row), np.roll(boundary_us, 1))
    ended = np.where(first, over, ~np.roll(some, 1))
    begins = (first & ~is_known) | (ended & plan.is_frozen(ended_us, now_us))
    # A key that had expired starts over: its panes are numbered from 0.
    life = np.flatnonzero(first | begins)[np.cumsum(first | begins) - 1]
    goes_on = (first & ~begins)[life]
    counted = emits & (looked.timing[place] != EARLY)
    index = _before(emits, life) + np.where(goes_on, rows_of(rows, "panes", row)[life], 0)
    later = _before(counted, life) + np.where(goes_on, rows_of(rows, "later_panes", row)[life], 0)
    live = ~begins & np.where(first, rows_of(rows, "live", row), np.roll(emits, 1))
    retracts = live & plan.retracts
    replaces = live if plan.retracts else index > 0
    before = np.where(first, row, NOWHERE)
    emitted = Emitted(place, emits, index, later, retracts, before, replaces)
    return (_only_last(emitted, code), before) if plan.is_final else (emitted, before)


def _only_last(emitted: Emitted, code: Ints) -> Emitted:
    """Only the last row of each key, as its only one."""
    last = np.append(code[1:] != code[:-1], True)[: len(code)]
    none, no = np.zeros(len(code), np.int64), np.zeros(len(code), bool)
    return attrs.evolve(emitted, emits=emitted.emits & last, index=none, later=none, retracts=no, replaces=no)


def _of_history(plan: RollingPlan, looked: Looked, values: Values, rows: Rows) -> tuple[Emitted, Ints]:
    """With a row per key and boundary; and the row that each replaces in memory."""
    first = run_starts([looked.code])
    there = _rows_at(looked, rows)
    changed = _changed(values, rows, first, _rows_before(looked, rows, first))
    live = (there != NOWHERE) & rows_of(rows, "live", there)
    ends_alike = rows_of(rows, "is_last", there) == ~values.some
    same = live & ends_alike & _equal(values, rows, there)
    again = ~changed & live & ~same  # a row that is not retracted must be right, though nothing changes there
    emits = (changed & ~same) | (again & (not plan.retracts))
    retracts = live & (emits | ~changed) & plan.retracts
    place = np.flatnonzero(emits | retracts)
    there, emits, retracts = there[place], emits[place], retracts[place]
    index, later = (np.where(there == NOWHERE, 0, rows_of(rows, name, there)) for name in ("panes", "later_panes"))
    replaces = retracts if plan.retracts else index > 0
    return Emitted(place, emits, index, later, retracts, there, replaces), there


def rows_of(rows: Rows, column: str, at: Ints) -> Any:
    """A column of some rows; any value for NOWHERE."""
    return rows[column][at] if len(rows) else np.zeros(len(at), rows[column].dtype)


def _before(flags: Flags, life: Ints) -> Ints:
    """How many flags are set before each entry, since the one where its life begins."""
    before: Ints = np.cumsum(flags) - flags
    counted: Ints = before - before[life]
    return counted


def _changed(values: Values, rows: Rows, first: Flags, before: Ints) -> Flags:
    """Whether the values at a boundary differ from those before: at the boundary before, for the first of a key in a row."""
    some = values.some
    had = np.where(first, before != NOWHERE, np.roll(some, 1))
    at = np.flatnonzero(first & (before != NOWHERE))
    rank = _ranks(values, rows, before[at])
    own = rank[: len(some)]
    earlier = np.roll(own, 1)
    earlier[at] = rank[len(some) :]
    changed: Flags = (some != had) | (some & had & (own != earlier))
    return changed


def _equal(values: Values, rows: Rows, there: Ints) -> Flags:
    """Whether the values at a boundary equal those of a row; False for NOWHERE."""
    at = np.flatnonzero(there != NOWHERE)
    rank = _ranks(values, rows, there[at])
    equal = np.zeros(len(there), bool)
    equal[at] = rank[at] == rank[len(there) :]
    return equal


def _ranks(values: Values, rows: Rows, at: Ints) -> Ints:
    """Numbers that are equal for equal values: of all that are looked at, then of some rows."""
    both = pa.concat_tables([values.table, rows.take(at).values])
    return value_ranks([column.combine_chunks() for column in both.columns], both.num_rows)


def _rows_at(looked: Looked, rows: Rows) -> Ints:
    """The row at each boundary that is looked at."""
    row_us = rows["time_us"][looked.rows_at]
    codes = np.concatenate([looked.code, looked.of_rows])
    parts = [factorize_values(codes), factorize_values(np.concatenate([looked.boundary_us, row_us]))]
    of = factorize_tuples(parts, len(codes)).of
    count = len(looked.code)
    at = np.full(int(of.max(initial=-1)) + 1, NOWHERE)
    at[of[count:]] = looked.rows_at
    return at[of[:count]]


def _rows_before(looked: Looked, rows: Rows, first: Flags) -> Ints:
    """For the first boundary of each key its latest row before; NOWHERE: it has no earlier row, or had ended."""
    live = rows["live"][looked.rows_at]
    of_rows, rows_at = looked.of_rows[live], looked.rows_at[live]
    row_us = rows["time_us"][rows_at]
    before = np.full(len(looked.code), NOWHERE)
    since_us = np.zeros(looked.keys.num_rows, np.int64)
    since_us[looked.code[first]] = looked.boundary_us[first]
    earlier = row_us < since_us[of_rows]
    of_rows, rows_at, row_us = of_rows[earlier], rows_at[earlier], row_us[earlier]
    order = np.lexsort((row_us, of_rows))
    latest = np.full(looked.keys.num_rows, NOWHERE)
    latest[of_rows[order]] = rows_at[order]  # of each key the last one stays
    before[first] = latest[looked.code[first]]
    ended = (before != NOWHERE) & rows_of(rows, "is_last", before)
    before[ended] = NOWHERE
    return before


def _updates(plan: RollingPlan, looked: Looked, values: Values, rows: Rows, emitted: Emitted) -> Updates:
    """The rows of output, by boundary; each retraction right before the pane that replaces it."""
    place = emitted.place
    boundary_us, timing = looked.boundary_us[place], looked.timing[place]
    is_last = ~values.some[place]
    panes, gone = np.flatnonzero(emitted.emits), np.flatnonzero(emitted.retracts)
    pane = make_block(
        len(panes),
        kind=PANE_KIND,
        timing=timing[panes],
        windowless=True,
        index=emitted.index[panes],
        on_time_index=np.where(timing[panes] == EARLY, -1, emitted.later[panes]),
        is_first=emitted.index[panes] == 0,
        is_last=is_last[panes],
        replaces=emitted.replaces[panes],
        pane_time_us=boundary_us[panes],
    )
    row, stored = emitted.before[gone], emitted.before[gone] != NOWHERE
    before = gone - 1
    index = emitted.index[gone] - 1
    of = {
        name: np.where(stored, rows_of(rows, column, row), own[before])
        for name, column, own in (
            ("time", "time_us", boundary_us),
            ("timing", "timing", timing),
            ("last", "is_last", is_last),
        )
    }
    back = make_block(
        len(gone),
        kind=RETRACTION_KIND,
        timing=of["timing"].astype(np.int8),
        windowless=True,
        index=index,
        on_time_index=np.where(of["timing"] == EARLY, -1, emitted.later[gone] - 1),
        is_first=index == 0,
        is_last=of["last"],
        replaces=emitted.emits[gone],
        pane_time_us=of["time"],
    )
    # The values of a retraction are those of its row, in memory or in this list.
    own = rows.take(row[stored]).values
    all_values = pa.concat_tables([values.table, own])
    own_at = np.where(stored, values.table.num_rows + np.cumsum(stored) - 1, place[before])
    at, of_code = (
        np.concatenate([own_at, place[panes]]),
        np.concatenate([looked.code[place[gone]], looked.code[place[panes]]]),
    )
    by_time = np.lexsort((looked.code[place], boundary_us))
    turn = np.empty(len(place), np.int64)
    turn[by_time] = np.arange(len(place))
    turn = np.concatenate([2 * turn[gone], 2 * turn[panes] + 1])
    order = pa.array(np.argsort(turn, kind="stable"))
    block = sort_blocks([back, pane], turn)
    names = list(plan.of.key_schema.names)
    keys = looked.keys.take(pa.array(of_code)).take(order)
    keys = pa.table(keys.columns[: len(names)], names=names) if names else keys.select([])
    shown = all_values.take(pa.array(at)).take(order)
    time = pa.array(block["pane_time_us"]).cast(TIMESTAMP)
    if plan.history:
        keys = keys.append_column(TIME, time)
    else:
        shown = shown.add_column(0, TIME, time)
    return Updates(block, keys, shown)
