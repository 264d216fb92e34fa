"""The buffer of a suppress in memory: one row per slot, a (key, window), of the updates in a step.

Keys and values stay in Arrow pools; a slot refers to its entries.

stored columns (one entry per slot; ``_us``: int64, microseconds since the epoch):
    start_us, end_us, windowless    its window
    kind, timing, index, on_time_index, is_first, is_last, pane_time_us    of its pane
    has_pane            bool: it has a pane
    has_parts           bool: it has rows in accumulators, with a pane or waiting for one
    since_us            event time since when it is buffered; NEVER_US: unknown
    since_clock_us      the same on the processing-time clock
    bytes               int64: bytes of its key and of all values, of panes and retractions (kernels/sizes.py)
working columns:
    held_before         bool: it was buffered before this step
    segment             int64: the segment that it was read from; NO_VALUE if new
    touched             bool: it differs from the stored slot
    gone                bool: it is empty; not written back
    key_at, values_at   int64: its entries in the pools
``taken`` columns (one entry per pane that was emitted and has been retracted since):
    owner               int64: its slot
    start_us, end_us, timing, index, on_time_index, is_first, is_last, pane_time_us    the pane's own
    values_at           int64: its values, in the pool
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.contract.keyed_windows import keyed_windows
from beamish.contract.pane_columns import Block
from beamish.kernels.arrays import NO_ENTRY, Flags, Ints
from beamish.kernels.sizes import bytes_of_rows
from beamish.tables.pool import Pool
from beamish.tables.working_table import Columns, Companions, Declared, WorkingTable
from beamish.triggers.trigger import NEVER_US

WINDOW_COLUMNS = ("start_us", "end_us", "windowless")
TAKEN_COLUMNS = ("start_us", "end_us", "timing", "index", "on_time_index", "is_first", "is_last", "pane_time_us")
PANE_COLUMNS = ("kind", *TAKEN_COLUMNS[2:])

STORED_COLUMNS: Declared = {
    "start_us": ("int64", 0),
    "end_us": ("int64", 0),
    "windowless": ("bool", False),
    "kind": ("int8", 0),
    "timing": ("int8", 0),
    "index": ("int64", 0),
    "on_time_index": ("int64", -1),
    "is_first": ("bool", False),
    "is_last": ("bool", False),
    "pane_time_us": ("int64", 0),
    "has_pane": ("bool", False),
    "has_parts": ("bool", False),
    "since_us": ("int64", NEVER_US),
    "since_clock_us": ("int64", NEVER_US),
    "bytes": ("int64", 0),
}
_WORKING_COLUMNS: Declared = {"held_before": ("bool", False), "touched": ("bool", True)}


class HeldTable(WorkingTable):
    """The slots of a step."""

    def __init__(self, keys: pa.Schema, values: pa.Schema) -> None:
        self.keys, self.values = Pool(keys), Pool(values)
        pools = {"key.": ("key_at", self.keys), "value.": ("values_at", self.values)}
        super().__init__(STORED_COLUMNS, _WORKING_COLUMNS, pools)
        declared = {name: STORED_COLUMNS[name] for name in TAKEN_COLUMNS}
        self.companion_rows = self.taken = Companions(declared, "value.", self.values)

    def given(self, stored: pa.Table) -> Columns:
        return {"held_before": np.ones(stored.num_rows, dtype=bool)}

    def find(self, keys: pa.Table, key_at: Ints, columns: Block) -> Ints:
        """The slots of updates, int64[n]; missing ones are appended, as buffered from now on.

        Args:
            keys: the updates' key columns, normalised, n rows.
            key_at: int64[n], their positions in the pool.
            columns: their ``start_us``, ``end_us``, ``windowless``.
        """
        known = np.flatnonzero(~self["gone"])
        of_known = self.keys.take(self["key_at"][known])
        both = [pa.chunked_array([*a.chunks, *b.chunks]) for a, b in zip(of_known.columns, keys.columns, strict=True)]
        rows = len(key_at)
        bounds = {name: np.concatenate([self[name][known], columns[name]]) for name in WINDOW_COLUMNS}
        groups = keyed_windows(both, **bounds).groups()
        slot_of = np.full(groups.count, NO_ENTRY, dtype=np.int64)
        slot_of[groups.of[: len(known)]] = known
        own = groups.of[len(known) :]
        first = np.full(groups.count, NO_ENTRY, dtype=np.int64)
        first[own[::-1]] = np.arange(rows)[::-1]
        new = np.flatnonzero((slot_of == NO_ENTRY) & (first != NO_ENTRY))
        new = new[np.argsort(first[new])]
        made = {name: columns[name][first[new]] for name in WINDOW_COLUMNS}
        slot_of[new] = self.append(len(new), {"key_at": key_at[first[new]], **made})
        return slot_of[own]

    def copy(self, at: Ints, to: HeldTable) -> Ints:
        """Append slots without retractions to another table; returns their indices there."""
        key_at = to.keys.append(self.keys.take(self["key_at"][at]))
        values_at = to.values.append(self.values.take(self["values_at"][at]))
        columns = {name: self[name][at] for name in (*STORED_COLUMNS, "held_before", "segment", "touched")}
        return to.append(len(at), {**columns, "key_at": key_at, "values_at": values_at})

    @property
    def takes_back(self) -> Flags:
        """Whether a slot has retractions: bool, one per slot."""
        found = np.zeros(len(self), dtype=bool)
        found[self.taken["owner"]] = True
        return found

    def settle(self, watermark_us: int) -> None:
        """At the end of a step: remove empty slots; slots with only retractions count as buffered from now on."""
        takes_back = self.takes_back
        holds = self["has_pane"] | self["has_parts"] | takes_back
        self["gone"][~holds] = True
        alone = np.flatnonzero(takes_back & (self["since_us"] == NEVER_US))
        if len(alone):
            owner, time_us = self.taken["owner"], self.taken["pane_time_us"]
            first = np.full(len(self), 0, dtype=np.int64)
            first[owner[::-1]] = time_us[::-1]
            self["since_us"][alone] = np.maximum(first[alone], watermark_us)

    def count_bytes(self, at: Ints) -> None:
        """Compute the bytes of slots."""
        if not len(at):
            return
        total = bytes_of_rows(self.keys.take(self["key_at"][at]))
        has_values = self["has_pane"][at] | self["has_parts"][at]
        total += bytes_of_rows(self.values.take(np.where(has_values, self["values_at"][at], NO_ENTRY)))
        self["bytes"][at] = total
        mine = np.isin(self.taken["owner"], at)
        if mine.any():
            own = bytes_of_rows(self.values.take(self.taken["values_at"][mine]))
            np.add.at(self["bytes"], self.taken["owner"][mine], own)

    def drop(self, at: Ints) -> None:
        """Clear slots."""
        self["gone"][at] = True
        self["touched"][at] = True
        self.taken.remove(at)
