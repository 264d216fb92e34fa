"""Joins that give each pair once: what windows keep of rows when they fire, and what they let go of.

See docs/rules/stages.md#each-pair-once. What is kept is in their accumulators (accumulations/base/pairs_once.py).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.accumulations.base.pairs_once import PairsOnce
from beamish.contract.drops import OUT_OF_RETENTION
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import NO_VALUE, Flags, Ints
from beamish.kernels.buffers import numbers
from beamish.kernels.groups import Groups
from beamish.kernels.reserved import INPUT, KEPT_BY, NUMBER
from beamish.kinds.window.bundle import Bundle
from beamish.kinds.window.drops import drop_from_windows
from beamish.kinds.window.entries import Entries
from beamish.kinds.window.step import Step
from beamish.triggers.trigger import NEVER_US, WindowIndices


def with_columns_of_pairs(step: Step, bundle: Bundle) -> Bundle:
    """The bundle, with what a join must know of its rows: numbers that no other row of the shard has, and by which time they are kept."""
    if step.plan.numbers_rows:
        first, rows = step.state.note.numbered, bundle.table.num_rows
        step.state.note.numbered += rows
        bundle.table = bundle.table.append_column(NUMBER, pa.array(np.arange(first, first + rows, dtype=np.int64)))
    if step.plan.once is not None and step.plan.once.dated:
        bundle.table = bundle.table.append_column(KEPT_BY, pa.array(_kept_by_us(bundle)))
    return bundle


def _kept_by_us(bundle: Bundle) -> Ints:
    """The event times by which rows are kept; of those that have none the end of time."""
    return np.where(bundle.time_us == NO_VALUE, END_OF_TIME_US, bundle.time_us)


def in_order_of_windows(step: Step, groups: Groups, target: Ints) -> Groups:
    """Groups numbered by the ends of their windows, then the starts: a pair comes in the first that takes both of its rows.

    Args:
        step: the step.
        groups: of entries that are in one window.
        target: intp, one per entry: the window.
    """
    at = target[groups.first()]
    place = np.empty(groups.count, dtype=np.int64)
    place[np.lexsort((step.table["start_us"][at], step.table["end_us"][at]))] = np.arange(groups.count)
    return Groups(place[groups.of], groups.count)


def drop_no_longer_kept(step: Step, bundle: Bundle, entries: Entries) -> Entries:
    """Drop the entries of rows that are older than what is kept of their input; gives the rest."""
    once = step.plan.once
    if once is None or not step.plan.cuts or not len(entries.row):
        return entries
    old = np.zeros(bundle.table.num_rows, dtype=bool)
    which = numbers(bundle.table[INPUT].combine_chunks())
    for side, keeps in zip(once.sides, once.keeps, strict=True):
        if keeps.for_us is not None:
            old |= (which == side.number) & (keeps.until_us(_kept_by_us(bundle)) <= step.watermark_us)
    drop_from_windows(step, bundle, entries.only(old[entries.row]), OUT_OF_RETENTION)
    return entries.only(~old[entries.row])


def cut_to_what_is_kept(step: Step, at: WindowIndices) -> None:
    """Windows that took rows let go of those that are no longer kept."""
    once = step.plan.once
    if once is not None and once.cuts:
        _cut(step, once, at)


def let_go(step: Step, open_: Flags) -> Flags:
    """Open windows let go of rows that the watermark has passed; those without a match are rows that come now.

    Args:
        step: the step, in which the watermark has moved.
        open_: bool, one per window of the table: whether it is open.

    Returns:
        bool, one per window of the table: whether rows without a match went, so that it is asked.
    """
    table, once = step.table, step.plan.once
    asked = np.zeros(len(open_), dtype=bool)
    if once is None or not step.plan.cuts:
        return asked
    at = np.flatnonzero(open_ & (table["keeps_until_us"] <= step.watermark_us))
    if not len(at):
        return asked
    alone = _cut(step, once, at)
    table["touched"][at] = True
    at, alone = at[alone > 0], alone[alone > 0]
    table["unemitted_rows"][at] += alone
    table["unemitted_since_us"][at] = np.minimum(table["unemitted_since_us"][at], step.progress(at))
    step.plan.options.trigger.on_rows_columns(table.trigger, at, alone, step.now())
    asked[at] = True
    return asked


def make_rows_alone_due(step: Step, at: WindowIndices) -> Flags:
    """Rows without a match come with the last pane of windows; whether a pair is due in each: bool."""
    once = _join(step)
    state = once.of_last_pane(_state(step, at))
    _set_state(step, at, state)
    return once.has_due(state)


def keep_rows(step: Step, at: WindowIndices, last: Flags) -> None:
    """Windows have fired: the pairs that were due are not, the rows stay, unless it was for the last time (bool, one per window)."""
    stays = at[~last]
    _set_state(step, stays, _join(step).after_pane(_state(step, stays)))
    if step.plan.cuts:
        step.table["keeps_until_us"][at[last]] = NEVER_US


def _cut(step: Step, once: PairsOnce, at: WindowIndices) -> Ints:
    """Windows let go of rows; how many went without a match: int64, one per window."""
    state, alone = once.cut(_state(step, at), step.watermark_us)
    _set_state(step, at, state)
    if step.plan.cuts:
        step.table["keeps_until_us"][at] = once.kept_until_us(state)
    return alone


def _join(step: Step) -> PairsOnce:
    assert step.plan.once is not None  # noqa: S101 - asked only of such a join
    return step.plan.once


def _state(step: Step, at: WindowIndices) -> list[pa.Array]:
    return [column.combine_chunks() for column in step.table.state.take(step.table["state_at"][at]).columns]


def _set_state(step: Step, at: WindowIndices, state: list[pa.Array]) -> None:
    step.table["state_at"][at] = step.table.state.append(pa.table(state, schema=step.plan.state_schema))
