"""Dropping rows: counting by reason, and listing if the pipeline requests it.

See docs/rules/output.md#dropped-rows.

A row is dropped from a window (expired, or its trigger has finished), or, once and from no window, for its event time (missing or
out of range). The second kind is counted once per row, the first once per (row, window).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from beamish.accumulations.base.accumulation import merged_name
from beamish.contract.drops import (
    DUPLICATE,
    ERROR,
    EVENT_TIME_OUT_OF_RANGE,
    NULL_EVENT_TIME,
    UNMATCHED_REMOVAL,
    late_by,
    structs,
)
from beamish.contract.updates import DROPPED_KIND
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.column_names import INPUT
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.step.bundle import Bundle, plan_keys
from beamish.kinds.window.step.entries import Entries
from beamish.kinds.window.step.step import Step
from beamish.watermarks import NO_WATERMARK_US


def admit_timed(step: Step, bundle: Bundle) -> Flags:
    """Drop rows without an event time in range, and those that parts drop for their key; returns which remain: bool, one per row."""
    keys, timed = plan_keys(step.plan, bundle.untimed), bundle.timed
    _drop_from_no_window(step, bundle.untimed, bundle.untimed_rows, step.table.keys.append(keys), NULL_EVENT_TIME)
    step.drops.count(EVENT_TIME_OUT_OF_RANGE, bundle.out_of_range_rows)
    if not timed.all():
        rows = bundle.table.filter(pa.array(~timed))
        _drop_from_no_window(step, rows, int(bundle.rows[~timed].sum()), bundle.key_at[~timed], EVENT_TIME_OUT_OF_RANGE)
    for part in step.parts:
        timed = part.admit_keys(step, bundle, timed)
    return timed


def drop_from_windows(step: Step, bundle: Bundle, entries: Entries, reason: int) -> None:
    """Drop entries, each from its window."""
    _drop_from_windows(step, bundle, entries, reason, None)


def _drop_from_windows(
    step: Step, bundle: Bundle, entries: Entries, reason: int, messages: Sequence[str] | None
) -> None:
    step.drops.count(reason, int(bundle.rows[entries.row].sum()))
    if reason not in (UNMATCHED_REMOVAL, DUPLICATE, ERROR) and step.plan.progress.by_watermark:
        _note_latest(step, step.progress_of_rows(bundle, entries.row), bundle.first_us[entries.row])
    if step.drops.lists and len(entries.row):
        rows = as_listed(step.plan, bundle.table.take(pa.array(entries.row)))
        late_by_us = late_by(step.progress_of_rows(bundle, entries.row), bundle.place[entries.row])
        step.output.add(
            len(entries.row),
            kind=DROPPED_KIND,
            key_at=entries.key_at,
            start_us=entries.start_us,
            end_us=entries.end_us,
            dropped_at=step.drops.list_rows(rows, reason, late_by_us, messages),
        )


def drop_error(step: Step, bundle: Bundle, entries: Entries, messages: Sequence[str]) -> None:
    """Drop entries that caused errors, each from its window, with the error."""
    _drop_from_windows(step, bundle, entries, ERROR, messages)


def _note_latest(step: Step, watermark_us: int | Ints, time_us: Ints) -> None:
    """Track the maximum lateness of dropped rows (of a slice that of its start, if the query is not observed)."""
    known = ~np.isin(watermark_us, [NO_WATERMARK_US, END_OF_TIME_US]) & np.ones(len(time_us), dtype=bool)
    if known.any():
        late_by_us = int((watermark_us - time_us)[known].max())
        step.late_by_us = late_by_us if step.late_by_us is None else max(step.late_by_us, late_by_us)


def drop_rows(step: Step, bundle: Bundle, rows: Flags, reason: int, *, messages: Sequence[str] | None = None) -> None:
    """Drop rows that are in no window.

    Args:
        step: the current step.
        bundle: the rows.
        rows: bool, one per row of the bundle: whether it is dropped.
        reason: the reason.
        messages: the error of each dropped row.
    """
    if rows.any():
        _drop_from_no_window(
            step, bundle.table.filter(pa.array(rows)), int(rows.sum()), bundle.key_at[rows], reason, messages=messages
        )


def drop_from_no_window(step: Step, rows: pa.Table, reason: int, messages: Sequence[str]) -> None:
    """Drop rows outside of a bundle; ``messages``: the error of each."""
    _drop_from_no_window(
        step, rows, rows.num_rows, step.table.keys.append(plan_keys(step.plan, rows)), reason, messages=messages
    )


def _drop_from_no_window(
    step: Step, rows: pa.Table, count: int, key_at: Ints, reason: int, *, messages: Sequence[str] | None = None
) -> None:
    step.drops.count(reason, count)
    if step.drops.lists and rows.num_rows:
        at = step.drops.list_rows(as_listed(step.plan, rows), reason, messages=messages)
        step.output.add(rows.num_rows, kind=DROPPED_KIND, key_at=key_at, windowless=True, dropped_at=at)


def as_listed(plan: WindowPlan, rows: pa.Table) -> pa.Array:
    """Rows in the plan's ``row_type``: in a merge one struct per input, of which only the row's own is not null."""
    fields = list(plan.row_type)
    if not plan.has_several_inputs:
        return structs(rows, pa.schema(fields))
    which, parts = rows[INPUT].to_numpy(), []
    for number, input_ in enumerate(fields):
        columns = [rows[merged_name(input_.name, field.name)].combine_chunks() for field in input_.type]
        mask = pa.array(which != number)
        parts.append(pa.StructArray.from_arrays(columns, fields=list(input_.type), mask=mask))
    return pa.StructArray.from_arrays(parts, fields=fields)
