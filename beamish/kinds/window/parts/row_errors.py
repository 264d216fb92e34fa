"""Dropping rows that cause errors, so that the query continues (docs/rules/output.md#errors).

All entries of a bundle are added at once. Only if that raises, the step is rolled back and the failing entries are
searched: windows that can be added as a whole are kept, the others are bisected. So a bundle without errors
costs a copy of the window table's columns, and nothing else.

Rows that fail before they reach a shard are sent there like others, each in a payload with its error
(packing.py), and are dropped there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from beamish.contract.drops import ERROR
from beamish.contract.keys import KeyedWindows
from beamish.errors import NumericOverflowError, UserFunctionError
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups
from beamish.kinds.window.plan.binding import BoundAccumulation, bind_keeper
from beamish.kinds.window.plan.part import Add, Assign, WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.window_table import naming_window
from beamish.kinds.window.step.arrival import load_windows
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_error, drop_from_no_window, drop_rows
from beamish.kinds.window.step.entries import Entries
from beamish.kinds.window.step.packing import about, check_numbers, only_wanted, unpack
from beamish.kinds.window.step.step import Step
from beamish.triggers.trigger import WindowIndices

Raised: TypeAlias = tuple[int, str]
"""An item and its error."""


def without_errors(things: Ints, tried: Callable[[Ints], object]) -> Iterator[Raised]:
    """The items to leave out so that the rest does not raise, each with its error.

    All are tried together; if that raises, first the earlier half (the smaller, for an odd number), then the later half together
    with the rest of the earlier, recursively. An item that raises together with those before it is left out.

    Args:
        things: int64, in order.
        tried: raises if these items, in order, raise together.
    """
    taken = things[:0]
    waiting = [things]
    while waiting:
        part = waiting.pop()
        if not len(part):
            continue
        both = np.concatenate([taken, part])
        try:
            tried(both)
        except (UserFunctionError, NumericOverflowError) as error:
            if len(part) == 1:
                yield int(part[0]), what_raised(error)
            else:
                half = len(part) // 2
                waiting += [part[half:], part[:half]]
        else:
            taken = both


def failing(parts: Sequence[Ints], tried: Callable[[Ints], object]) -> Iterator[tuple[Ints, str]]:
    """The parts that raise on their own, each with its error; parts are independent.

    Args:
        parts: of items.
        tried: raises if any of the items raise.
    """
    if not len(parts):
        return
    try:
        tried(np.concatenate(parts))
    except (UserFunctionError, NumericOverflowError) as error:
        if len(parts) == 1:
            yield parts[0], what_raised(error)
        else:
            half = len(parts) // 2
            yield from failing(parts[:half], tried)
            yield from failing(parts[half:], tried)


def what_raised(error: UserFunctionError | NumericOverflowError) -> str:
    """The cause, without the fix."""
    return error.raised or str(error)


class RowErrorsPart(WindowPart):
    """Drops rows that cause errors.

    Args:
        keepers: accumulations that store the rows of windows, for retracting input: so that the removal of a dropped row is recognised.
    """

    def __init__(self, keepers: tuple[BoundAccumulation, ...]) -> None:
        self.accumulators = keepers

    @classmethod
    def of(cls, plan: WindowPlan) -> RowErrorsPart | None:
        if not plan.options.drops_errors:
            return None
        first = sum(len(bound.fields) for bound in plan.accumulations)
        return cls((bind_keeper(plan.schema, first),) if plan.signed else ())

    def receive(self, step: Step, payloads: Sequence[bytes]) -> Sequence[bytes]:
        """Drop the rows of payloads with a reason."""
        errors = [about(payload).get("error") for payload in payloads]
        for payload, error in zip(payloads, errors, strict=True):
            if error is not None:
                rows, _, _ = unpack([payload])
                drop_from_no_window(step, rows, ERROR, [error] * rows.num_rows)
        return [payload for payload, error in zip(payloads, errors, strict=True) if error is None]

    def assigning(self, assign: Assign) -> Assign:
        """Drop the rows whose windows cannot be assigned."""

        def without(step: Step, bundle: Bundle, windowed: Flags) -> Entries:
            try:
                return assign(step, bundle, windowed)  # type: ignore[no-any-return]
            except UserFunctionError:
                return assign(step, bundle, windowed & ~_drop_unassigned(assign, step, bundle, windowed))  # type: ignore[no-any-return]

        return without

    def adding(self, add: Add) -> Add:
        """Drop the entries that cannot be added."""

        def without(step: Step, bundle: Bundle, entries: Entries) -> WindowIndices:
            before = step.mark()
            try:
                return add(step, bundle, entries)
            except (UserFunctionError, NumericOverflowError):
                step.rollback(before)
            kept = _drop_failing(add, step, bundle, entries)
            return add(step, bundle, kept) if len(kept.row) else np.empty(0, dtype=np.intp)

        return without

    def refused(
        self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices, *, state: pa.Table
    ) -> None:
        with naming_window(step.table, at):
            for bound in step.plan.accumulations:
                bound.check_state(state)


def _drop_unassigned(assign: Assign, step: Step, bundle: Bundle, windowed: Flags) -> Flags:
    """Drop the rows for which ``assign`` raises: bool, one per row."""
    rows = np.arange(len(bundle.time_us))

    def tried(at: Ints) -> None:
        assign(step, bundle, np.isin(rows, at))

    each = np.flatnonzero(windowed)
    raised = [(int(at[0]), message) for at, message in failing(np.split(each, np.arange(1, len(each))), tried)]
    dropped: Flags = np.isin(rows, [at for at, _ in raised])
    drop_rows(step, bundle, dropped, ERROR, messages=[message for _, message in raised])
    return dropped


def _drop_failing(add: Add, step: Step, bundle: Bundle, entries: Entries) -> Entries:
    """Drop the entries for which ``add`` raises; returns the others."""
    load_windows(step, bundle, entries)
    before = step.mark()

    def tried(at: Ints) -> None:
        try:
            add(step, bundle, _taken(entries, at))
        finally:
            step.rollback(before)

    units = failing(_in_order(step, bundle, entries), tried)
    raised: list[Raised] = [one for unit, _ in units for one in without_errors(unit, tried)]
    dropped = np.zeros(len(entries.row), dtype=bool)
    dropped[[at for at, _ in raised]] = True
    messages = dict(raised)
    drop_error(step, bundle, entries.only(dropped), [messages[at] for at in np.flatnonzero(dropped).tolist()])
    return entries.only(~dropped)


def _taken(entries: Entries, at: Ints) -> Entries:
    flags = np.zeros(len(entries.row), dtype=bool)
    flags[at] = True
    return entries.only(flags)


def _in_order(step: Step, bundle: Bundle, entries: Entries) -> list[Ints]:
    """Entries by window, or by key for merging windows, each in the order of precedence.

    Groups are independent. The order is that of duplicates (docs/rules/output.md#duplicates-first), retractions last.
    """
    key = factorize_rows(bundle.keys.columns, len(bundle.time_us)).of[entries.row]
    unit = key if step.plan.window.merging else KeyedWindows(key, entries.start_us, entries.end_us).groups().of
    by = [(bundle.signs < 0).astype(np.int64)] if step.plan.signed else []
    order = bundle.first_come(entries.row, [*by, *bundle.times])
    order = order[np.argsort(unit[order], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(unit[order])) + 1)


def wanted_and_unusable(
    plans: Sequence[WindowPlan], number: int, rows: pa.Table
) -> list[tuple[pa.Table, dict[str, Any]]]:
    """The rows for which the condition raises or whose number is invalid, with the reason; then the rows that satisfy it.

    The plans take the same rows, with the same options except for windows.
    """
    if not plans[0].options.drops_errors:
        return [(only_wanted(plans[0], number, rows), {})]

    def tried(at: Ints) -> None:
        _wanted(plans, number, rows.take(pa.array(at)))

    try:
        return [(_wanted(plans, number, rows), {})]
    except (UserFunctionError, NumericOverflowError):
        each = np.split(np.arange(rows.num_rows), np.arange(1, rows.num_rows))
        errors = [(int(at[0]), message) for at, message in failing(each, tried)]
        kept = np.setdiff1d(np.arange(rows.num_rows), [at for at, _ in errors])
        wanted = _wanted(plans, number, rows.take(pa.array(kept)))
        return [*((rows.slice(at, 1), {"error": message}) for at, message in errors), (wanted, {})]


def _wanted(plans: Sequence[WindowPlan], number: int, rows: pa.Table) -> pa.Table:
    wanted = only_wanted(plans[0], number, rows)
    for plan in plans:
        check_numbers(plan, wanted)
    return wanted
