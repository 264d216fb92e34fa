"""The buffer: one row per slot, a (key, window), in segments with an index under ``held/<name>/`` in the stage's store.

Keys and values stay in Arrow pools; a slot refers to its entries.

stored columns (one entry per slot; ``_us``: int64, microseconds since the epoch):
    start_us, end_us, windowless    its window
    kind, timing, index, on_time_index, is_first, is_last, pane_time_us    of its pane
    has_pane            bool: it has a pane
    has_parts           bool: it has rows in accumulators, with a pane or waiting for one
    since_us            event time since when it is buffered; NEVER_US: unknown
    since_clock_us      the same on the processing-time clock
    bytes               int64: bytes of its key and of all values, of panes and retractions (kernels/buffers.py)
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

The stored buffer of a suppress: segments of slots and their index, in the stage's store under ``held/<name>/``.

index       the segments' columns, and metadata as JSON
s<number>   a segment: slots, with their keys as ``key.<name>`` and their values as ``value.<name>``
t<number>   the retractions of a segment's slots, with values as ``value.<name>`` (omitted if empty)

columns of the index (one entry per segment, int64; ``_us``: microseconds since the epoch):
    segment                     its number
    slots, bytes                number of slots, and bytes of keys and values
    since_us, since_clock_us    the least of its emittable slots; NEVER_US: none
    end_us                      their windows' least end
    lasts                       how many of these bring a last pane
    takes_back                  1 if a slot has retractions, else 0

Due times are not stored but computed, so the wait may change between two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.contract.keys import keyed_windows
from beamish.contract.stored import Layout, Store
from beamish.contract.updates import Block
from beamish.errors import StateError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import NO_ENTRY, Flags, Ints, bytes_of_rows
from beamish.tables.segments import Runs, SegmentStore
from beamish.tables.working_table import Columns, Companions, Declared, Pool, WorkingTable
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


FORMAT = 1


def entry_name(suppress: str, name: str) -> str:
    """An entry of a suppress in its stage's store."""
    return f"held/{suppress}/{name}"


def layout_of(suppress: str) -> Layout:
    """The layout of a suppress's slots in the store of its stage."""

    def read(about: dict[str, Any]) -> dict[str, Any]:
        if about["format"] != FORMAT:
            raise StateError(
                f"the checkpoint holds updates of suppress {suppress!r} in format {about['format']}, this version of beamish "
                f"writes {FORMAT}: start from a new checkpoint, or use the version that wrote it"
            )
        return about

    columns = ("bytes", "since_us", "since_clock_us", "end_us", "lasts")
    return Layout(
        entry_name(suppress, "").rstrip("/"),
        columns,
        rows="slots",
        companion=("t", "takes_back"),
        has_metadata=True,
        read=read,
    )


def held_store(store: Store, suppress: str) -> SegmentStore:
    """The stored slots of a suppress (StateError: it has another format, or cannot be read)."""
    held = SegmentStore(store, layout_of(suppress))
    held.about.setdefault("format", FORMAT)
    return held


def entries(held: HeldTable, may_leave: Callable[[HeldTable], Flags]) -> Callable[[Ints, Runs], Mapping[str, Ints]]:
    """A function that computes the index columns of slots; ``may_leave``: whether each slot can be emitted by itself."""

    def of(at: Ints, runs: Runs) -> Mapping[str, Ints]:
        leaves = may_leave(held)[at]
        since_us, since_clock_us, end_us = (
            runs.least(np.where(leaves, us[at], NEVER_US))
            for us in (held["since_us"], held["since_clock_us"], ends(held))
        )
        return {
            "bytes": runs.total(held["bytes"][at]),
            "since_us": since_us,
            "since_clock_us": since_clock_us,
            "end_us": end_us,
            "lasts": runs.total((leaves & held["is_last"][at] & held["has_pane"][at]).astype(np.int64)),
        }

    return of


def write_slots(
    store: SegmentStore, number: int, held: HeldTable, slots: Ints, may_leave: Callable[[HeldTable], Flags]
) -> None:
    """Write slots as a segment, replacing it; without slots it is deleted."""
    of = entries(held, may_leave)(slots, Runs(np.zeros(1, np.int64))) if len(slots) else {}
    columns = {name: int(column[0]) for name, column in of.items()}
    store.write(number, held.stored(slots), columns, held.companions(slots))


def ends(held: HeldTable | Block) -> Ints:
    """The ends of slots' windows, int64 microseconds; the end of time without a window."""
    return np.where(held["windowless"], END_OF_TIME_US, held["end_us"])
