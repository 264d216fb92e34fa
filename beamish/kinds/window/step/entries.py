"""Entries: rows, each in one window of its own.

A row (or slice of rows, see packing.py) that falls in two windows is two entries. An entry's *target* is the window of
the window table that it ends up in (merging.py).

columns (one entry per (row, window)):
    row                 int64[n], index into the bundle
    start_us, end_us    int64[n], microseconds since the epoch, or numbers of rows: the row's own window
    key_at              int64[n], the position of its key in the window table's pool of keys

Windows of keys as columns, to be compared with each other on columns.

columns (one entry per window):
    key                 int64[n], code of its key; codes compare within one step's known windows and rows only
    start_us, end_us    int64[n], microseconds since the epoch
"""

from __future__ import annotations

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.keys import KeyedWindows
from beamish.kernels.buffers import Flags, Ints, numbers
from beamish.kernels.codes import factorize_rows
from beamish.kernels.column_names import INPUT
from beamish.kinds.window.state.window_table import naming_key
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.step import Step
from beamish.triggers.trigger import WindowIndices
from beamish.windows.option import assigned
from beamish.windows.within import WithinInput


@attrs.define
class Entries:
    """Rows in windows of their own, as columns."""

    row: Ints
    start_us: Ints
    end_us: Ints
    key_at: Ints

    def within(self, windows: KeyedWindows) -> Entries:
        """The same, each in another window."""
        return attrs.evolve(self, start_us=windows.start_us, end_us=windows.end_us)

    def only(self, kept: Flags) -> Entries:
        """Those with ``kept`` set."""
        return Entries(self.row[kept], self.start_us[kept], self.end_us[kept], self.key_at[kept])


def entries_of(step: Step, bundle: Bundle, windowed: Flags) -> Entries:
    """Put a bundle's rows into windows of their own.

    Args:
        step: the current step.
        bundle: the rows.
        windowed: bool, one per row of the bundle: the rows to take.
    """
    own = bundle.table.select(list(step.plan.window.columns))
    if windowed.all():
        return _assign(step, bundle.place, own, bundle.key_at)
    kept = np.flatnonzero(windowed)
    entries = _assign(step, bundle.place[kept], own.take(pa.array(kept)), bundle.key_at[kept])
    return attrs.evolve(entries, row=kept[entries.row])


def _assign(step: Step, place: Ints, own: pa.Table, key_at: Ints) -> Entries:
    """The entries of rows with these event times or numbers, the window option's own columns, and keys."""
    with naming_key(step.table, key_at):
        row, start, end = assigned(step.plan.window, place, [column.to_pylist() for column in own.columns])
    return Entries(row, start, end, key_at[row])


def into_own_windows(step: Step, bundle: Bundle, entries: Entries, rows: Flags) -> Entries:
    """Without the entries of some rows in windows that are not their own, where a full interval join would match them.

    Args:
        step, bundle, entries: of the current bundle.
        rows: bool, one per row of the bundle: those that have no match.
    """
    window = step.plan.window
    if not isinstance(window, WithinInput) or window.beside is None:
        return entries
    which = numbers(bundle.table[INPUT].combine_chunks())[entries.row]
    visits = window.visits(bundle.place[entries.row], which, entries.start_us)
    return entries.only(~(visits & rows[entries.row]))


def known_and_own(step: Step, bundle: Bundle, entries: Entries) -> tuple[WindowIndices, KeyedWindows, KeyedWindows]:
    """The live windows of the table, and the entries' own, with a common coding of keys.

    Returns:
        known: intp[k], indices into the window table.
        known_windows: k windows.
        own: one window per entry.
    """
    table = step.table
    known = np.flatnonzero(~table["gone"])
    keys = table.keys.take(table["key_at"][known])
    both = [pa.chunked_array([*a.chunks, *b.chunks]) for a, b in zip(keys.columns, bundle.keys.columns, strict=True)]
    code = factorize_rows(both, len(known) + len(bundle.time_us)).of
    known_windows = KeyedWindows(code[: len(known)], table["start_us"][known], table["end_us"][known])
    return known, known_windows, KeyedWindows(code[len(known) :][entries.row], entries.start_us, entries.end_us)
