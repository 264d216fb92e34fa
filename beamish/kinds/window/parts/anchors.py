"""Windows anchored at rows (docs/rules/windows.md#anchored-windows).

Which windows a key has depends on its rows. So a shard stores rows while a window may still have them or be anchored at them, and a
bundle adds rows to three sorts of windows: to those that its rows anchor, and to those that a stored row anchors and only now have a
row, all rows between their bounds; to the others, that are in the window table already, the new ones.

columns of anchors (one entry per row, by time):
    event time      int64, microseconds since the epoch
cells: the key columns, normalised, as ``key.<name>``; the columns that accumulations read as ``row.<name>``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.contract.relation import Relation
from beamish.contract.stored import KeyedTable, Store
from beamish.errors import PipelineError
from beamish.kernels.anchored import changed_windows
from beamish.kernels.buffers import Flags, Ints, cast_table
from beamish.kernels.codes import factorize_rows
from beamish.kernels.column_names import EVENT_TIME
from beamish.kinds.window.plan.options import WindowOptions
from beamish.kinds.window.plan.part import Add, Assign, WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.entries import Entries
from beamish.kinds.window.step.step import Step
from beamish.tables.records import RecordTable, cells_of_keys
from beamish.tables.timed_records import Timed, TimedRecords, timed_table
from beamish.tables.working_table import rows_without_columns
from beamish.triggers.trigger import WindowIndices
from beamish.watermarks import NO_WATERMARK_US
from beamish.windows.time_windows import AnchoredWindows

NAME = "anchors"
"""Prefix of the entries of rows in a shard's store."""
_MOST_ENTRIES = 2**22
"""Approximate number of entries that are added at once."""


def check_anchored(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check the options and inputs of anchored windows (PipelineError: one is not supported)."""
    each = options.windowings
    anchored = next((one for one in each.values() if isinstance(one, AnchoredWindows)), None)
    if anchored is not None:
        raise PipelineError(
            f"window({options.window!r}): the windows of {anchored!r} depend on the rows of a key, and cannot be one of several "
            "windowings; give them a pipeline of their own"
        )
    if not isinstance(options.window, AnchoredWindows):
        return
    where = f"window({options.window!r})"
    if any(relation.name is not None for relation in takes):
        raise PipelineError(
            f"{where} of a merge: windows are anchored at the rows of one input; union the inputs before, or give the merge other "
            "windows, such as bm.SlidingWindows"
        )
    if any(relation.retracts for relation in takes):
        raise PipelineError(
            f"{where} over a stage that retracts, or a changelog: a removed row would remove the windows that it anchors; make the "
            "stage before accumulating() or discarding(), or use bm.SlidingWindows"
        )
    for call, fix in _refused(options):
        raise PipelineError(f"{where} with {call}: {fix}")


def _refused(options: WindowOptions) -> Iterator[tuple[str, str]]:
    """Calls that anchored windows do not support, each with the reason and the fix."""
    if options.deduplication is not None:
        columns = ", ".join(map(repr, options.deduplication.columns))
        before = f".deduplicate({columns}, within='1 hour').then(bm.Pipeline()...)"
        why = "a row is stored once for all of its windows, so duplicates must be dropped before"
        yield options.deduplication.call, f"{why}; deduplicate in the stage before: {before}"
    if options.retention is not None:
        why = "late rows may anchor windows before an evicted one"
        yield options.retention.call, f"{why}; leave it out: windows expire after their lateness"
    if options.drops_errors:
        why = "a row that fails would be dropped again from each window that later rows anchor"
        yield "on_error('drop')", f"{why}; drop such rows before, by .where(...)"


class AnchorsPart(WindowPart):
    """Adds rows to the windows that are anchored at them and at others.

    Args:
        plan: of the stage.
    """

    rows: TimedRecords[Timed]
    """The stored rows of the shard."""
    _arrived: Ints
    """The rows of the bundle that windows may have: their indices."""

    def __init__(self, plan: WindowPlan, window: AnchoredWindows) -> None:
        self._window, self._lateness_us = window, plan.options.lateness
        self._none, self._keys = Timed.none(_cells(plan)), cells_of_keys(plan.key_schema).names
        self.stores = f"; and each row until no window has it: for {window.difference} and the lateness"

    @classmethod
    def of(cls, plan: WindowPlan) -> AnchorsPart | None:
        return cls(plan, plan.window) if isinstance(plan.window, AnchoredWindows) else None

    def tables(self, plan: WindowPlan) -> Iterator[KeyedTable]:
        yield self._table()

    def _table(self) -> RecordTable[TimedRecords[Timed]]:
        return timed_table(NAME, self._none, self._keys)

    def open(self, plan: WindowPlan, store: Store, about: Mapping[str, Any]) -> AnchorsPart:
        opened = AnchorsPart(plan, self._window)
        opened.rows = self._table().open(store)
        return opened

    def save(self, watermark_us: int, reached: int) -> None:
        least_us = NO_WATERMARK_US
        if watermark_us != NO_WATERMARK_US:
            least_us = max(watermark_us - self._kept_us + 1, NO_WATERMARK_US)
        self.rows.forget(least_us)
        self.rows.save(least_us)

    @property
    def _kept_us(self) -> int:
        """How long a row is stored: until the window after it expires."""
        return self._window.length_us + 1 + self._lateness_us

    @property
    def next_due_us(self) -> int | None:
        last_us = self.rows.first_segment_us
        return None if last_us is None else last_us + self._kept_us

    # Arriving rows

    def assigning(self, assign: Assign) -> Assign:
        """Note the rows that a window may still have, though their own has expired."""

        def own(step: Step, bundle: Bundle, windowed: Flags) -> Entries:
            entries: Entries = assign(step, bundle, windowed)
            last_end_us = bundle.time_us[entries.row] + self._window.length_us
            self._arrived = entries.row[step.plan.expiry_us(last_end_us) > step.progress_of_rows(bundle, entries.row)]
            return entries

        return own

    def adding(self, add: Add) -> Add:
        """Add rows to all windows that have them, not only to their own."""

        def to_all(step: Step, bundle: Bundle, _: Entries) -> WindowIndices:
            came = [add(step, bundle, some) for some in self._entries(step, bundle)]
            return np.concatenate([np.empty(0, dtype=np.intp), *came])

        return to_all

    def _entries(self, step: Step, bundle: Bundle) -> Iterator[Entries]:
        """New rows, and in new windows stored ones, in their windows that are not expired; those of a window together."""
        if not len(self._arrived):
            return
        length_us, arrived = self._window.length_us, len(bundle.time_us)
        row, key = self._with_stored(step, bundle)
        windows = changed_windows(key, bundle.time_us[row], row >= arrived, length_us)
        progress = step.progress_of_rows(bundle, row[windows.rows[windows.first]])
        windows = windows.only(step.plan.expiry_us(windows.start_us + length_us) > progress)
        for part in windows.parts(_MOST_ENTRIES):
            window, at = part.pairs()
            start_us = part.start_us[window]
            yield Entries(row[at], start_us, start_us + length_us, bundle.key_at[row[at]])

    def _with_stored(self, step: Step, bundle: Bundle) -> tuple[Ints, Ints]:
        """Store the rows that arrived, and append to the bundle the stored ones that windows may share with them.

        Returns:
            the indices of both in the bundle, and a number of the key of each.
        """
        arrived, count = self._arrived, len(bundle.time_us)
        time_us, reach_us = bundle.time_us[arrived], self._window.length_us
        at = self.rows.between(int(time_us.min()) - reach_us, int(time_us.max()) + reach_us)
        old, new = self.rows.records.take(at), self._records(bundle, arrived)
        both = pa.concat_tables([one.cells.select(self._keys) for one in (old, new)])
        key = factorize_rows(both.columns, both.num_rows).of
        shared = np.isin(key[: len(old)], key[len(old) :])
        self._append(step, bundle, old.take(shared))
        self.rows.add(new)
        row = np.concatenate([np.arange(count, len(bundle.time_us)), arrived])
        return row, np.concatenate([key[: len(old)][shared], key[len(old) :]])

    def _records(self, bundle: Bundle, at: Ints) -> Timed:
        """Rows of a bundle, as they are stored."""
        schema = self._none.cells.schema
        columns: dict[str, Any] = {f"key.{name}": bundle.keys[name] for name in bundle.keys.schema.names}
        columns |= {f"row.{name}": bundle.table[name] for name in bundle.plan.schema.names}
        columns["key"] = pa.array(np.zeros(len(bundle.time_us), np.int8))
        cells = pa.table({name: columns[name] for name in schema.names}).take(pa.array(at))
        return Timed.new(cast_table(cells, schema).combine_chunks(), **{EVENT_TIME: bundle.time_us[at]})

    @staticmethod
    def _append(step: Step, bundle: Bundle, stored: Timed) -> None:
        """Append stored rows to a bundle."""
        plan, cells, count = step.plan, stored.cells, len(stored)
        keys = cells.select([f"key.{name}" for name in plan.key_schema.names])
        keys = keys.rename_columns(plan.key_schema.names) if plan.keys else rows_without_columns(count)
        columns = {name: keys[name] for name in plan.key_schema.names}
        columns |= {name.removeprefix("row."): cells[name] for name in cells.schema.names if name.startswith("row.")}
        columns[EVENT_TIME] = pa.array(stored.time_us)
        schema = bundle.table.schema
        # Columns that are only listed if a row is dropped are null: stored rows are dropped from no window.
        own = {
            name: columns[name] if name in columns else pa.nulls(count, schema.field(name).type)
            for name in schema.names
        }
        table = cast_table(pa.table(own), schema)
        one = np.ones(count, dtype=np.int64)
        bundle.key_at = np.concatenate([bundle.key_at, step.table.keys.append(keys)])
        bundle.table = pa.concat_tables([bundle.table, table]).combine_chunks()
        bundle.keys = pa.concat_tables([bundle.keys, keys]) if plan.keys else bundle.table.select([])
        bundle.rows, bundle.signs = np.concatenate([bundle.rows, one]), np.concatenate([bundle.signs, one])
        for name in ("time_us", "place", "first_us", "last_us"):
            setattr(bundle, name, np.concatenate([getattr(bundle, name), stored.time_us]))


def _cells(plan: WindowPlan) -> pa.Schema:
    """The cells of rows: their keys, and what accumulations read."""
    read = {name for bound in plan.accumulations for name in bound.columns}
    columns = [field.with_name(f"row.{field.name}") for field in plan.schema if field.name in read]
    return pa.schema([*cells_of_keys(plan.key_schema), *columns])
