"""Deduplication in windows: a row is dropped from a window that already has its id (docs/rules/output.md#duplicates).

With ``within`` a shard stores ids for that time, and duplicates are found before windows are assigned. Otherwise each window stores
the ids of its rows as a list, in a pool of the window table, also after it has fired and after its trigger has finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.contract.drops import DUPLICATE, NULL_EVENT_TIME, OUT_OF_RETENTION
from beamish.contract.keys import KeyedWindows
from beamish.contract.stored import KeyedTable, Store
from beamish.kernels.buffers import NO_VALUE, Flags, Ints, list_column, list_lengths, starts
from beamish.kernels.codes import factorize_rows, factorize_tuples, normalise
from beamish.kernels.groups import Groups
from beamish.kinds.deduplicate.remembered import RememberedIds, ids_table
from beamish.kinds.window.plan.part import WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.window_table import TriggerMerge
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_from_windows, drop_rows
from beamish.kinds.window.step.entries import Entries, known_and_own
from beamish.kinds.window.step.step import Step
from beamish.tables.records import NOWHERE
from beamish.triggers.trigger import WindowIndices
from beamish.windows.option import Numbering


class DuplicatesPart(WindowPart):
    """Drops duplicates.

    Args:
        ids: the columns that identify a row within its key.
        numbering: how rows are numbered, for count windows.
    """

    def __init__(self, ids: pa.Schema, numbering: Numbering | None) -> None:
        self.ids, self._numbering = ids, numbering

    @classmethod
    def of(cls, plan: WindowPlan) -> DuplicatesPart | None:
        declared = plan.options.deduplication
        if declared is None:
            return None
        ids = pa.schema([plan.schema.field(name) for name in declared.columns])
        if declared.within is None:
            return IdsOfWindowsPart(ids, plan.window.numbering)
        return RememberedIdsPart(ids, plan.window.numbering, declared.within.us)

    def admit_rows(self, step: Step, bundle: Bundle, rows: Flags) -> Flags:
        return rows & ~self._drop(step, bundle, rows)

    def admit(self, step: Step, bundle: Bundle, entries: Entries) -> Entries:
        if self._numbering is None or self._numbering.numbered_by is None:
            return entries  # judged in their windows, or before they had numbers
        again = self._drop(step, bundle, np.isin(np.arange(len(bundle.time_us)), entries.row))
        bundle.group[again] = NOWHERE
        return entries.only(~again[entries.row])

    def _drop(self, step: Step, bundle: Bundle, among: Flags) -> Flags:
        """Drop those of the rows ``among`` that are duplicates or older than the stored ids: bool, one per row."""
        raise NotImplementedError

    def columns_of(self, bundle: Bundle, rows: Ints) -> list[pa.Array]:
        """The id columns."""
        own = bundle.table.select(self.ids.names).take(pa.array(rows))
        return [normalise(column.combine_chunks()) for column in own.columns]


class RememberedIdsPart(DuplicatesPart):
    """Stores ids for ``within_us`` microseconds."""

    remembered: RememberedIds
    """The ids of the shard."""

    def __init__(self, ids: pa.Schema, numbering: Numbering | None, within_us: int) -> None:
        super().__init__(ids, numbering)
        self._within_us = within_us
        self.stores = f"; and the {', '.join(ids.names)} of each row, until it expires"

    def tables(self, plan: WindowPlan) -> Iterator[KeyedTable]:
        schema = pa.schema([*plan.key_schema, *self.ids])
        yield ids_table(
            schema, range(len(plan.key_schema)), lambda store: RememberedIds(schema, self._within_us, store)
        )

    def open(self, plan: WindowPlan, store: Store, about: Mapping[str, Any]) -> RememberedIdsPart:
        opened = RememberedIdsPart(self.ids, self._numbering, self._within_us)
        opened.remembered = RememberedIds(pa.schema([*plan.key_schema, *self.ids]), self._within_us, store)
        return opened

    def save(self, watermark_us: int, reached: int) -> None:
        self.remembered.save(watermark_us)

    @property
    def next_due_us(self) -> int | None:
        return self.remembered.next_due_us

    def admit(self, step: Step, bundle: Bundle, entries: Entries) -> Entries:
        if self._numbering is not None or not len(entries.row):
            return super().admit(step, bundle, entries)
        old, again = self._judge(step, bundle, np.unique(entries.row))
        drop_from_windows(step, bundle, entries.only(old[entries.row]), OUT_OF_RETENTION)
        drop_from_windows(step, bundle, entries.only(again[entries.row]), DUPLICATE)
        return entries.only(~(old | again)[entries.row])

    def _drop(self, step: Step, bundle: Bundle, among: Flags) -> Flags:
        untimed = among & (bundle.time_us == NO_VALUE)
        old, again = self._judge(step, bundle, np.flatnonzero(among & ~untimed))
        for rows, reason in ((untimed, NULL_EVENT_TIME), (old, OUT_OF_RETENTION), (again, DUPLICATE)):
            drop_rows(step, bundle, rows, reason)
        dropped: Flags = again | untimed | old
        return dropped

    def _judge(self, step: Step, bundle: Bundle, rows: Ints) -> tuple[Flags, Flags]:
        """Which rows, all with event time, are older than the stored ids, and which are duplicates: bool, one per row of the bundle."""
        old, again = (np.zeros(bundle.table.num_rows, dtype=bool) for _ in range(2))
        old[rows] = self.remembered.too_old(bundle.time_us[rows], step.forwarded_us)
        rows = rows[~old[rows]]
        rows = rows[bundle.first_come(rows, bundle.times)]
        keys = [column.combine_chunks() for column in bundle.keys.take(pa.array(rows)).columns]
        ids = [*keys, *self.columns_of(bundle, rows)]
        again[rows] = self.remembered.take(ids, bundle.time_us[rows], step.forwarded_us)
        return old, again


class IdsOfWindowsPart(DuplicatesPart):
    """Stores ids per window."""

    def __init__(self, ids: pa.Schema, numbering: Numbering | None) -> None:
        super().__init__(ids, numbering)
        self.pools = {"ids": pa.schema([("ids", pa.list_(pa.struct(list(ids))))])}
        self.stores = f", and the {', '.join(ids.names)} of each of its rows"

    def _drop(self, step: Step, bundle: Bundle, among: Flags) -> Flags:
        """Look for duplicates in all stored windows of a row's key."""
        again = np.zeros(len(among), dtype=bool)
        if not among.any():
            return again
        rows = np.flatnonzero(among)
        step.load(step.state.of_keys(bundle.keys))
        nothing = np.zeros(len(rows), dtype=np.int64)
        entries = Entries(rows, nothing, nothing, bundle.key_at[rows])
        held, windows, own = known_and_own(step, bundle, entries)
        took = np.zeros(len(rows), dtype=bool)
        again[rows] = self._came_before(step, bundle, entries, own.key, closed=took, held=held, of_held=windows.key)
        drop_rows(step, bundle, again, DUPLICATE)
        return again

    def admit_to(
        self, step: Step, bundle: Bundle, entries: Entries, window: Ints, *, closed: Flags, held: Ints, of_held: Ints
    ) -> Flags | None:
        if self._numbering is not None:
            return None
        again = self._came_before(step, bundle, entries, window, closed=closed, held=held, of_held=of_held)
        drop_from_windows(step, bundle, entries.only(again), DUPLICATE)
        return ~again

    def admit_beside(
        self, step: Step, bundle: Bundle, entries: Entries, own: KeyedWindows, *, closed: Ints, windows: KeyedWindows
    ) -> Flags | None:
        """A row is a duplicate if a closed window around its own has its id; of several, the first by start and end."""
        if self._numbering is not None:
            return None
        by_start = np.lexsort((windows.end_us, windows.start_us))
        items, of = _items(step, closed[by_start])
        window = by_start[of.of]
        groups = self._same(bundle, items, entries.row, np.concatenate([windows.key[window], own.key]))
        before, now = groups.of[: len(window)], groups.of[len(window) :]
        order = np.argsort(before, kind="stable")
        first, last = (np.searchsorted(before[order], now, side=side) for side in ("left", "right"))
        entry = np.repeat(np.arange(len(own)), last - first)
        window = window[order][np.arange(len(entry)) - np.repeat(starts(last - first), last - first) + first[entry]]
        inside = (windows.start_us[window] <= own.start_us[entry]) & (own.end_us[entry] <= windows.end_us[window])
        took, at = np.unique(entry[inside], return_index=True)
        again: Flags = np.isin(np.arange(len(own)), took)
        drop_from_windows(step, bundle, entries.only(again).within(windows.take(window[inside][at])), DUPLICATE)
        return ~again

    def on_rows(self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices) -> None:
        items, of = _items(step, at)
        new = pa.StructArray.from_arrays(self.columns_of(bundle, entries.row), fields=list(self.ids))
        self._set(step, at, pa.concat_arrays([items, new]), of.followed_by(groups))

    def on_merge(self, step: Step, merge: TriggerMerge) -> None:
        items, of = _items(step, merge.part)
        self._set(step, merge.into, items, Groups(merge.groups.of[of.of], merge.groups.count))

    def _came_before(
        self, step: Step, bundle: Bundle, entries: Entries, window: Ints, *, closed: Flags, held: Ints, of_held: Ints
    ) -> Flags:
        """Which entries are duplicates of a row of their window, or of an earlier row of the bundle."""
        wanted = np.isin(of_held, window)
        held, of_held = held[wanted], of_held[wanted]
        items, of = _items(step, held)
        order = bundle.first_come(entries.row, bundle.times)
        of_all = np.concatenate([of_held[of.of], window[order]])
        groups = self._same(bundle, items, entries.row[order], of_all)
        first = groups.first()[groups.of]
        again = (first < len(items)) | (first != np.arange(len(of_all))) & ~np.append(
            np.ones(len(items), bool), closed[order]
        )
        flags = np.empty(len(order), dtype=bool)
        flags[order] = again[len(items) :]
        return flags

    def _same(self, bundle: Bundle, items: pa.StructArray, rows: Ints, of: Ints) -> Groups:
        """Groups of equal ids and ``of``: the ids of windows, then those of a bundle's rows; one number per id."""
        both = [
            pa.concat_arrays([before.cast(now.type), now])
            for before, now in zip(items.flatten(), self.columns_of(bundle, rows), strict=True)
        ]
        return factorize_tuples([Groups(of, int(of.max(initial=-1)) + 1), factorize_rows(both, len(of))], len(of))

    def _set(self, step: Step, at: WindowIndices, items: pa.StructArray, of: Groups) -> None:
        """Store the ids of windows; each group is a window."""
        order = np.argsort(of.of, kind="stable")
        lists = list_column(items.take(pa.array(order)), of.sizes())
        step.table["ids_at"][at] = step.table.pools["ids"].append(pa.table([lists], schema=self.pools["ids"]))


def _items(step: Step, at: WindowIndices) -> tuple[pa.StructArray, Groups]:
    """The ids of windows, each with the position of its window in ``at``."""
    table = step.table
    lists = table.pools["ids"].take(table["ids_at"][at])["ids"].combine_chunks()
    place = np.flatnonzero(lists.is_valid().to_numpy(zero_copy_only=False))
    lists = lists.drop_null()
    return lists.flatten(), Groups(np.repeat(place, list_lengths(lists)), len(at))
