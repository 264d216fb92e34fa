"""The numbers of rows, where windows are of rows (docs/rules/windows.md#windows-of-rows).

They are given as rows come, or rows bring them along. What has its number is put into windows as a row with its event time is
(entries.py); then its group has come further, and windows that are full by that are asked.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.drops import NULL_NUMBER
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.buffers import plain
from beamish.kernels.codes import factorize_values
from beamish.kernels.groups import Groups
from beamish.kernels.order import run_starts, sort_keys
from beamish.kinds.window.bundle import Bundle
from beamish.kinds.window.drops import drop_rows
from beamish.kinds.window.reaches import NONE, Reaches
from beamish.kinds.window.step import Step
from beamish.tables.keyed_records import HASHED, NOWHERE
from beamish.tables.pool import rows_without_columns

_MOST_SPANS = 64
"""If a group comes further by more spans of full windows than that, all of its part are read."""


def count_rows(step: Step, reaches: Reaches, bundle: Bundle) -> Flags:
    """Number the rows of a bundle, as its ``place`` and ``group``; those that have none are dropped.

    Args:
        step: the step they came in.
        reaches: how far groups have come.
        bundle: the rows.

    Returns:
        bool, one per row: whether it has a number.
    """
    numbering = step.plan.numbering
    assert numbering is not None  # noqa: S101 - windows of rows say how rows are numbered
    if numbering.numbered_by is not None:
        brought = bundle.table[numbering.numbered_by]
        counted: Flags = brought.is_valid().to_numpy()
        drop_rows(step, bundle, ~counted, NULL_NUMBER)
        bundle.place = pc.fill_null(brought.cast(pa.int64()), 0).to_numpy()
    else:
        counted = np.ones(len(bundle.time_us), dtype=bool)
        for part in step.parts:
            counted = part.admit_rows(step, bundle, counted)
    rows = np.flatnonzero(counted)
    bundle.group = np.full(len(counted), NOWHERE)
    keys = bundle.keys.take(pa.array(rows)) if bundle.keys.schema.names else rows_without_columns(len(rows))
    bundle.group[rows] = reaches.find(keys, new=True)
    if numbering.numbered_by is None:
        ordered = rows[_order(bundle, rows, numbering.order_by, by_key=numbering.over_stream)]
        group = bundle.group[ordered]
        runs = Groups(np.cumsum(run_starts([group])) - 1, len(group))
        bundle.place = np.zeros(len(counted), dtype=np.int64)
        bundle.place[ordered] = reaches.counted(group) + runs.positions()
    return counted


def _order(bundle: Bundle, rows: Ints, columns: tuple[str, ...], *, by_key: bool) -> Ints:
    """In which order rows are counted, those of each group together: their places among ``rows``."""
    by = [bundle.group]
    by += [key for name in columns for key in sort_keys(plain(bundle.table[name].combine_chunks()))]
    by.append(bundle.time_us)
    if by_key:
        by += [key for column in bundle.keys.columns for key in sort_keys(plain(column.combine_chunks()))]
    return bundle.first_come(rows, by)


def advance(step: Step, reaches: Reaches, bundle: Bundle) -> Ints:
    """The groups of the rows that were counted have come further; gives these groups."""
    numbering, rows = step.plan.numbering, np.flatnonzero(bundle.group != NOWHERE)
    assert numbering is not None  # noqa: S101 - windows of rows say how rows are numbered
    groups = factorize_values(bundle.group[rows])
    at = bundle.group[rows][groups.first()]
    if numbering.numbered_by is None:
        reach = reaches.counted(at) + groups.sizes()
    else:
        reach = groups.greatest(bundle.place[rows]) + 1 - numbering.delay
    reaches.advance(at, reach, groups.greatest(bundle.time_us[rows]))
    return at


def load_passed(step: Step, reaches: Reaches, groups: Ints) -> None:
    """Read the segments in which something is due since groups have come further."""
    if not len(groups):
        return
    index = step.state.index
    if not step.plan.counts_by_key:
        step.load(index["due_us"] <= reaches.of(groups).max())
        return
    part = reaches.parts(groups)
    wanted = [part * 2]
    late, span = step.plan.lateness, step.state.note.span_us
    before, now = reaches.before(groups), reaches.of(groups)
    if late and step.state.by_key is None:
        had = before != NONE
        first, last = ((before[had] - late + 1) // span), ((now[had] - late) // span)
        part = part[had]
        far = last - first >= _MOST_SPANS
        whole = np.isin(step.state.part_of_segments, part[far])
        wanted.append(index["segment"][whole])
        spans = np.where(far, 0, last - first + 1)
        at = Groups.each(len(part)).repeat(spans)
        number = first[at.of] + at.positions()
        wanted.append((number * HASHED + part[at.of]) * 2 + 1)
    step.load(np.isin(index["segment"], np.unique(np.concatenate(wanted))))
