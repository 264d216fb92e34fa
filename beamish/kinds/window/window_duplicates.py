"""Rows that come again are dropped from the windows that took them (docs/rules/output.md#duplicates).

Where ids are remembered for some time, that is known before windows are looked for. Else each window has the ids of the rows
that it took: a list, in a pool of the window table. They stay when the window fires, and when its trigger finishes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.contract.drops import DUPLICATE, OUT_OF_RETENTION
from beamish.contract.keyed_windows import KeyedWindows
from beamish.kernels.arrays import NO_ENTRY, Flags, Ints
from beamish.kernels.buffers import list_column, list_lengths, starts
from beamish.kernels.codes import factorize_rows, factorize_tuples, normalise
from beamish.kernels.groups import Groups
from beamish.kinds.deduplicate.order import first_come
from beamish.kinds.deduplicate.remembered import RememberedIds
from beamish.kinds.window.bundle import Bundle
from beamish.kinds.window.drops import drop_from_windows
from beamish.kinds.window.entries import Entries
from beamish.kinds.window.step import Step
from beamish.kinds.window.trigger_tree import TriggerMerge
from beamish.triggers.trigger import WindowIndices


def drop_remembered(step: Step, bundle: Bundle, entries: Entries) -> Entries:
    """Drop the entries of rows that came before, and of those of which that is no longer known; gives the rest."""
    remembered = step.state.remembered
    if remembered is None or not len(entries.row):
        return entries
    rows = np.unique(entries.row)
    old, again = judge(step, remembered, bundle, rows)
    drop_from_windows(step, bundle, entries.only(old[entries.row]), OUT_OF_RETENTION)
    drop_from_windows(step, bundle, entries.only(again[entries.row]), DUPLICATE)
    return entries.only(~(old | again)[entries.row])


def judge(step: Step, remembered: RememberedIds, bundle: Bundle, rows: Ints) -> tuple[Flags, Flags]:
    """Rows of a bundle, all with event time: which nobody knows any more, and which came before; bool, one per row of the bundle."""
    old, again = (np.zeros(bundle.table.num_rows, dtype=bool) for _ in range(2))
    old[rows] = remembered.too_old(bundle.time_us[rows], step.watermark_us)
    rows = rows[~old[rows]]
    rows = rows[_order(step, bundle, rows)]
    keys = [column.combine_chunks() for column in bundle.keys.take(pa.array(rows)).columns]
    again[rows] = remembered.take([*keys, *_ids(step, bundle, rows)], bundle.time_us[rows], step.watermark_us)
    return old, again


def came_before(
    step: Step,
    bundle: Bundle,
    entries: Entries,
    window: Ints,
    *,
    closed: Flags,
    held: WindowIndices,
    window_of_held: Ints,
) -> Flags:
    """Which entries are of rows that their window took before, or takes first out of the bundle: bool, one per entry.

    Args:
        step: the step they came in.
        bundle: their rows.
        entries: n of them.
        window: int64[n], a number for the window that each is in.
        closed: bool[n], whether that takes no more rows.
        held: windows of the table that may have ids.
        window_of_held: int64, one per window held: its number.
    """
    wanted = np.isin(window_of_held, window)
    held, window_of_held = held[wanted], window_of_held[wanted]
    items, of = _items(step, held)
    order = _order(step, bundle, entries.row)
    of_all = np.concatenate([window_of_held[of.of], window[order]])
    groups = _same_ids(step, bundle, items, entries.row[order], of_all)
    first = groups.first()[groups.of]
    again = (first < len(items)) | (first != np.arange(len(of_all))) & ~np.append(
        np.ones(len(items), bool), closed[order]
    )
    flags = np.empty(len(order), dtype=bool)
    flags[order] = again[len(items) :]
    return flags


def took_before(
    step: Step, bundle: Bundle, entries: Entries, own: KeyedWindows, *, held: WindowIndices, windows: KeyedWindows
) -> Ints:
    """For each entry the window that took its row before and has the row's own window in it: the first by start and end.

    Args:
        step: the step they came in.
        bundle: their rows.
        entries: n of them.
        own: the windows of their rows alone, n.
        held: m windows of the table.
        windows: their bounds.

    Returns:
        int64[n], an index into ``held``, or NO_ENTRY.
    """
    found = np.full(len(own), NO_ENTRY, dtype=np.int64)
    by_start = np.lexsort((windows.end_us, windows.start_us))
    items, of = _items(step, held[by_start])
    window = by_start[of.of]
    groups = _same_ids(step, bundle, items, entries.row, np.concatenate([windows.key[window], own.key]))
    before, now = groups.of[: len(window)], groups.of[len(window) :]
    order = np.argsort(before, kind="stable")
    first, last = (np.searchsorted(before[order], now, side=side) for side in ("left", "right"))
    entry = np.repeat(np.arange(len(own)), last - first)
    window = window[order][np.arange(len(entry)) - np.repeat(starts(last - first), last - first) + first[entry]]
    inside = (windows.start_us[window] <= own.start_us[entry]) & (own.end_us[entry] <= windows.end_us[window])
    took, at = np.unique(entry[inside], return_index=True)
    found[took] = window[inside][at]
    return found


def take_ids(step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices) -> None:
    """Windows take the ids of entries; ``groups``: of the entries, one per window ``at``."""
    if not step.plan.windows_have_ids:
        return
    items, of = _items(step, at)
    columns = _ids(step, bundle, entries.row)
    new = pa.StructArray.from_arrays(columns, fields=list(step.plan.id_schema))
    _set(step, at, pa.concat_arrays([items, new]), of.followed_by(groups))


def merge_ids(step: Step, m: TriggerMerge) -> None:
    """Windows become one, which has the ids of all."""
    if step.plan.windows_have_ids:
        items, of = _items(step, m.part)
        _set(step, m.into, items, Groups(m.groups.of[of.of], m.groups.count))


def _items(step: Step, at: WindowIndices) -> tuple[pa.StructArray, Groups]:
    """The ids that windows have, each with the place of its window among ``at``."""
    table = step.table
    lists = table.ids.take(table["ids_at"][at])["ids"].combine_chunks()
    place = np.flatnonzero(lists.is_valid().to_numpy(zero_copy_only=False))
    lists = lists.drop_null()
    return lists.flatten(), Groups(np.repeat(place, list_lengths(lists)), len(at))


def _same_ids(step: Step, bundle: Bundle, items: pa.StructArray, rows: Ints, of: Ints) -> Groups:
    """Groups of equal ids, those of windows and then those of rows of a bundle, if also ``of`` is equal: one number per id."""
    both = [
        pa.concat_arrays([before.cast(now.type), now])
        for before, now in zip(items.flatten(), _ids(step, bundle, rows), strict=True)
    ]
    return factorize_tuples([Groups(of, int(of.max(initial=-1)) + 1), factorize_rows(both, len(of))], len(of))


def _set(step: Step, at: WindowIndices, items: pa.StructArray, of: Groups) -> None:
    """Have windows these ids, of groups of which each is a window."""
    order = np.argsort(of.of, kind="stable")
    lists = list_column(items.take(pa.array(order)), of.sizes())
    step.table["ids_at"][at] = step.table.ids.append(pa.table([lists], schema=step.plan.ids_schema))


def _ids(step: Step, bundle: Bundle, rows: Ints) -> list[pa.Array]:
    """The columns by which rows are known again."""
    own = bundle.table.select(step.plan.id_schema.names).take(pa.array(rows))
    return [normalise(column.combine_chunks()) for column in own.columns]


def _order(step: Step, bundle: Bundle, rows: Ints) -> Ints:
    """Which of some rows of a bundle comes first, by number where they bring one, and by event time: their indices among them."""
    by = [bundle.place, bundle.time_us] if step.plan.counts_brought else [bundle.time_us]
    return first_come(rows, by, bundle.table.select(list(step.plan.columns)), step.plan.read_columns)
