"""Segments of windows without an end: the recent ones, and generations of windows at rest.

A window without an end is in the segment of its key's hash. With many keys each batch would read and write all of them, though most keys are
at rest. So when the recent segments have many windows, those that a step leaves as they are become a *generation*: segments by the same
hashes, and an entry with the hashes of its keys, by which later steps find the generations that may have their keys. A window that changes
is recent again, with the rest of its segment. Many generations become one.

h<generation>       column key: int64, in order: the part and 32 bits of the hash of each key
segment numbers     the generation times ``HASHED_SEGMENTS``, plus the part; generation 0: the recent ones
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import pyarrow as pa

from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import NO_VALUE, Flags, Ints
from beamish.kernels.codes import hash_rows
from beamish.kinds.window.state.window_table import WindowTable
from beamish.tables.entries import read_entry, write_entry
from beamish.tables.segment_policy import FIRST_HASHED, HASHED_SEGMENTS, SegmentPolicy
from beamish.tables.segments import Segmented, SegmentStore
from beamish.tables.working_table import Pool

_NO_GENERATION = -1
_LAST_HASHED = FIRST_HASHED + HASHED_SEGMENTS * 2**32


def generations(number: Ints) -> Ints:
    """The generation of each segment; 0: a recent one, -1: its windows have an end."""
    endless = (number >= FIRST_HASHED) & (number < _LAST_HASHED)
    return np.where(endless, (number - FIRST_HASHED) // HASHED_SEGMENTS, _NO_GENERATION)


def _codes(keys: pa.Table) -> Ints:
    """The distinct parts and hashes of keys, as in an entry."""
    hashes = hash_rows(keys.columns, keys.num_rows)
    part = (hashes % np.uint64(HASHED_SEGMENTS)).astype(np.int64)
    return np.unique((part << 32) | (hashes >> np.uint64(32)).astype(np.int64))


@attrs.frozen
class Generations:
    """The generations of a shard.

    Attributes:
        segments: the stored windows.
        policy: when recent windows become a generation.
    """

    segments: SegmentStore
    policy: SegmentPolicy

    @property
    def of_segments(self) -> Ints:
        """The generation of each segment of the index."""
        return generations(self.segments.index["segment"])

    @property
    def numbers(self) -> list[int]:
        """The stored generations."""
        of = self.of_segments
        return np.unique(of[of > 0]).tolist()  # type: ignore[no-any-return]

    def with_keys(self, end_us: Ints, keys: Pool, key_at: Ints) -> Flags:
        """The segments of generations that may have some windows: bool, one per entry of the index."""
        numbers, endless = self.numbers, end_us == END_OF_TIME_US
        found = np.zeros(len(self.of_segments), dtype=bool)
        if not numbers or not endless.any():
            return found
        asked = _codes(keys.take(np.unique(key_at[endless])))
        for number in numbers:
            stored = read_entry(self.segments.store, self._entry(number))["key"].to_numpy()
            at = np.minimum(np.searchsorted(stored, asked), len(stored) - 1)
            parts = np.unique(asked[stored[at] == asked] >> 32)
            found |= np.isin(self.segments.index["segment"], FIRST_HASHED + number * HASHED_SEGMENTS + parts)
        return found

    def write(self, windows: Segmented[WindowTable], save: Callable[[Ints], None]) -> None:
        """Write the changed segments.

        Args:
            windows: those in memory.
            save: writes them, each window in the segment of its key's hash and this many generations after it.
        """
        before, made = self.numbers, self._resting(windows)
        table = windows.rows
        if made.any():
            number = max(before, default=0) + 1
            keys = _codes(table.keys.take(table["key_at"][made]))
            write_entry(self.segments.store, self._entry(number), pa.table({"key": keys}))
            table["touched"][made] = True
            save(np.where(made, number, 0))
        else:
            save(np.zeros(len(table), dtype=np.int64))
        for number in set(before).difference(self.numbers):
            self.segments.store.remove(self._entry(number))

    def _resting(self, windows: Segmented[WindowTable]) -> Flags:
        """The windows that become a generation: bool, one per window in memory."""
        table, of = windows.rows, self.of_segments
        endless = (table["end_us"] == END_OF_TIME_US) & ~table["gone"]
        changed = int((endless & table["touched"]).sum())
        new = int((endless & (table["segment"] == NO_VALUE)).sum())
        recent = int(self.segments.index["windows"][of == 0].sum()) + new
        if not changed or recent <= max(self.policy.recent_windows, self.policy.recent_batches * changed):
            return np.zeros(len(table), dtype=bool)
        many = len(self.numbers) >= self.policy.most_generations
        windows.load_where(of >= 0 if many else of == 0)
        of_window = generations(table["segment"])
        endless = (table["end_us"] == END_OF_TIME_US) & ~table["gone"]
        rests: Flags = endless & ~table["touched"] & ((of_window == 0) | (many & (of_window > 0)))
        return rests

    def _entry(self, number: int) -> str:
        return self.segments.layout.entry(number, "h")
