"""Rows with which something raises, where they are dropped and the query goes on (docs/rules/output.md#errors).

All entries of a bundle are added at once. Only where that raises, the step goes back to before it, and it is looked for which of
them it is: the windows that can be had as a whole are left alone, halves of the others are tried. So a bundle in which nothing
raises costs what it did, but for a copy of the window table's columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from beamish.contract.drops import ERROR
from beamish.contract.keyed_windows import KeyedWindows
from beamish.errors import NumericOverflowError, UserFunctionError
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.halves import Raised, failing, without_errors
from beamish.kinds.window.bundle import Bundle
from beamish.kinds.window.drops import drop_error, drop_rows
from beamish.kinds.window.entries import Entries, entries_of
from beamish.kinds.window.step import Step
from beamish.triggers.trigger import WindowIndices

Add = Callable[[Step, Bundle, Entries], WindowIndices]


def add_without_errors(
    step: Step, bundle: Bundle, entries: Entries, load: Callable[[], None], add: Add
) -> WindowIndices:
    """Add entries to their windows; those with which that raises are dropped, if the pipeline says so.

    Args:
        step: the step they came in.
        bundle: their rows.
        entries: n of them.
        load: reads the segments of the windows that they may need.
        add: what adds them; gives the windows that got one.
    """
    if not step.plan.options.drops_errors:
        return add(step, bundle, entries)
    before = step.mark()
    try:
        return add(step, bundle, entries)
    except (UserFunctionError, NumericOverflowError):
        step.go_back(before)
    load()
    before = step.mark()

    def tried(at: Ints) -> None:
        try:
            add(step, bundle, _taken(entries, at))
        finally:
            step.go_back(before)

    units = failing(_in_order(step, bundle, entries), tried)
    raised: list[Raised] = [one for unit, _ in units for one in without_errors(unit, tried)]
    dropped = np.zeros(len(entries.row), dtype=bool)
    dropped[[at for at, _ in raised]] = True
    messages = dict(raised)
    drop_error(step, bundle, entries.only(dropped), [messages[at] for at in np.flatnonzero(dropped).tolist()])
    kept = entries.only(~dropped)
    return add(step, bundle, kept) if len(kept.row) else np.empty(0, dtype=np.intp)


def entries_without_errors(step: Step, bundle: Bundle, windowed: Flags) -> Entries:
    """Put rows into windows of their own (``entries_of``); those whose windows cannot be had are dropped, if the pipeline says so."""
    try:
        return entries_of(step, bundle, windowed)
    except UserFunctionError:
        if not step.plan.options.drops_errors:
            raise

    def tried(at: Ints) -> None:
        entries_of(step, bundle, np.isin(np.arange(len(bundle.time_us)), at))

    each = np.flatnonzero(windowed)
    raised = [(int(at[0]), message) for at, message in failing(np.split(each, np.arange(1, len(each))), tried)]
    dropped = np.isin(np.arange(len(bundle.time_us)), [at for at, _ in raised])
    drop_rows(step, bundle, dropped, ERROR, messages=[message for _, message in raised])
    return entries_of(step, bundle, windowed & ~dropped)


def _taken(entries: Entries, at: Ints) -> Entries:
    flags = np.zeros(len(entries.row), dtype=bool)
    flags[at] = True
    return entries.only(flags)


def _in_order(step: Step, bundle: Bundle, entries: Entries) -> list[Ints]:
    """Entries by the windows that they are in, or where windows merge by their keys, each in the order in which rows count.

    What is in different ones has nothing to do with each other. The order is that of rows that come again
    (docs/rules/output.md#duplicates-first), removals last.
    """
    key = factorize_rows(bundle.keys.columns, len(bundle.time_us)).of[entries.row]
    unit = key if step.plan.window.merging else KeyedWindows(key, entries.start_us, entries.end_us).groups().of
    by = [(bundle.signs < 0).astype(np.int64)] if step.plan.signed else []
    order = bundle.first_come(entries.row, [*by, *bundle.times])
    order = order[np.argsort(unit[order], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(unit[order])) + 1)
