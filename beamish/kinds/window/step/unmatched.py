"""Removals without a matching row among those of a window or slice (docs/rules/changelogs.md#unmatched-removals).

Rows are added before removals, so a negative remainder shows them: a row that an accumulation stores a negative number of times, or a
negative number of rows. This is rare; only then are the removals determined.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from beamish.accumulations.base.retractable import Multiset
from beamish.kernels.buffers import Flags, Ints, numbers, pick, plain
from beamish.kernels.groups import Groups, items_of
from beamish.kernels.order import Key, is_orderable, ranks, sort_keys, sort_order
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.step.bundle import Bundle


def unmatched(
    plan: WindowPlan,
    bundle: Bundle,
    entry: Ints,
    groups: Groups,
    *,
    state: pa.Table,
    held: Ints,
    start_us: Ints | None = None,
) -> Flags | None:
    """Which entries are retractions without a matching row: bool, one per entry; None: none.

    Args:
        plan: the stage's plan.
        bundle: the rows.
        entry: int64[n], the rows of the entries.
        groups: of the entries, by window or slice.
        state: their accumulators with all entries.
        held: int64, one per group: its number of rows before.
        start_us: int64[n], the starts of the entries' windows, for interval joins; None: not one.
    """
    keepers = [bound for bound in plan.in_state if isinstance(bound.accumulation, Multiset)]
    keepers = list(plan.in_state[len(plan.accumulations) :]) or keepers
    if not keepers:
        return _too_many(plan, bundle, entry, groups, held)
    for bound in keepers:
        items, of = items_of(bound.state_of(state)[0], Groups.each(groups.count))
        *columns, times = items.flatten()
        lacking = np.flatnonzero(numbers(times) < 0)
        if not len(lacking):
            continue
        own = bundle.rows_of(entry, start_us)
        _, *values = bound.inputs(own)
        ours = [pa.array(bundle.time_us[entry]), *values]
        rank = ranks([np.concatenate([of.of[lacking], groups.of]), *_keys_of_both(columns, lacking, ours)])
        wanted = np.zeros(int(rank.max(initial=-1)) + 1, dtype=np.int64)
        wanted[rank[: len(lacking)]] = -numbers(times)[lacking]
        return _last_removals(plan, bundle, entry, rank[len(lacking) :], wanted)
    return None


def _too_many(plan: WindowPlan, bundle: Bundle, entry: Ints, groups: Groups, held: Ints) -> Flags | None:
    """Without stored rows: the retractions that exceed the rows of their window."""
    left = held + groups.sum(bundle.signs[entry])
    if (left >= 0).all():
        return None
    return _last_removals(plan, bundle, entry, groups.of, np.maximum(-left, 0))


def _last_removals(plan: WindowPlan, bundle: Bundle, entry: Ints, alike: Ints, wanted: Ints) -> Flags:
    """For each group of interchangeable retractions the last n, by event time, then by their columns in Spark's order.

    Args:
        plan: the stage's plan.
        bundle: the rows.
        entry: int64[n], the rows of the entries.
        alike: int64[n]: a number that entries have in common of which it does not matter which one is taken.
        wanted: int64, by that number: how many.
    """
    removals = np.flatnonzero((bundle.signs[entry] < 0) & (wanted[alike] > 0))
    rows = bundle.table.take(pa.array(entry[removals]))
    by = [
        key
        for field in plan.schema
        if is_orderable(field.type)
        for key in sort_keys(plain(rows[field.name].combine_chunks()))
    ]
    order = sort_order([alike[removals], bundle.time_us[entry[removals]], *by])[::-1]
    of = alike[removals][order]
    starts = np.flatnonzero(np.append(True, of[1:] != of[:-1])) if len(of) else np.empty(0, np.int64)
    place = np.arange(len(of)) - np.repeat(starts, np.diff(np.append(starts, len(of))))
    found = np.zeros(len(entry), dtype=bool)
    found[removals[order[place < wanted[of]]]] = True
    return found


def _keys_of_both(items: list[pa.Array], some: Ints, rows: list[pa.Array]) -> Iterator[Key]:
    """Sort keys of some items and then of rows, column by column."""
    for item, row in zip(items, rows, strict=True):
        both = pa.concat_arrays([pick(item, some), row.cast(item.type)])
        yield from sort_keys(plain(both))
