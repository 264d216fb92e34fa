"""Records by key, in segments by a hash of the key: more segments as there are more records.

A step reads and writes the segments of the keys that it touches. ``about`` of the segments has their number as ``buckets``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from beamish.contract.stored import Layout, Store
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.codes import factorize_rows, hash_rows
from beamish.tables.records import Records, SegmentedRecords
from beamish.tables.segments import Runs, SegmentStore

B = TypeVar("B", bound=Records)


class BucketedRecords(SegmentedRecords[B], Generic[B]):
    """The records of a shard.

    Args:
        store: the shard's.
        layout: of the table.
        none: an empty table of these records.
        keys: names of the cells with the key.
        rows: number of records in a segment, about; does not affect the output.
    """

    def __init__(self, store: Store, layout: Layout, none: B, keys: Sequence[str], rows: int = 4_096) -> None:
        super().__init__(SegmentStore(store, layout), none)
        self._keys, self._rows = list(keys), rows
        self._buckets: int = self.segments.about.get("buckets", 1)

    def load_keys(self, keys: pa.Table) -> None:
        """Load the segments of keys."""
        self.load(np.unique(self._bucket(keys)).tolist())

    def find(self, keys: pa.Table) -> Ints:
        """The record of each of some distinct keys, which have one at most; -1: none."""
        self.load_keys(keys)
        known = np.flatnonzero(self.alive)
        both = pa.concat_tables([keys, self.records.cells.select(self._keys).take(pa.array(known))])
        code = factorize_rows(both.columns, both.num_rows).of
        place = np.full(both.num_rows, -1)
        place[code[keys.num_rows :]] = known
        return place[code[: keys.num_rows]]

    def _bucket(self, keys: pa.Table) -> Ints:
        """The segment of each key, by the lower bits of its hash; the upper ones determine its shard."""
        return (hash_rows(keys.columns, keys.num_rows) % np.uint64(self._buckets)).astype(np.int64)

    def write_buckets(self, kept: Callable[[B], Flags], entries: Callable[[Any, Runs], Mapping[str, Ints]]) -> None:
        """Write the changes of the step, over more segments if these have become long; the arguments are those of ``write_back``."""
        rows = self.segments.rows + int(self.is_new.sum())
        if rows > 2 * self._rows * self._buckets:
            self._buckets = 1 << (rows // self._rows).bit_length()
            self.load_all()
            self.touch(np.flatnonzero(self.alive))
        self.segments.about = {"buckets": self._buckets}
        self.write_back(lambda of: self._bucket(of.cells.select(self._keys)), kept, entries)
