"""Stored windows counted where they are, for an overview of millions: numbers leave a shard, not windows."""

from __future__ import annotations

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.stored import Store
from beamish.instants import END_OF_TIME_US
from beamish.kernels.codes import factorize_rows, normalise
from beamish.kinds.window.stored.at_rest import WAITS, OfWindows
from beamish.tables.working_table import columns_under


@attrs.frozen(eq=False, kw_only=True)
class Counted(OfWindows):
    """Windows counted by their end and by what they wait for: a row per bin of a shard.

    Attributes:
        clocks: the watermark and the clock at which they wait, microseconds.
        edges: the bounds of bins, ascending: ends before the first or from the last one on belong to the nearest bin.
    """

    clocks: tuple[int, int]
    edges: tuple[int, ...]
    schema = pa.schema(
        [
            ("bin", pa.int64()),  # -1: without an end
            ("waits", pa.string()),
            ("windows", pa.int64()),
            ("new_rows", pa.int64()),
            ("keys", pa.int64()),  # different keys of the shard
        ]
    )

    def read(self, store: Store) -> pa.Table:
        stored = self._read(store, in_order=False)
        if not stored.num_rows:
            return self.schema.empty_table()
        waits = self._waits(stored, self._reached(store, stored, self.clocks[0]))
        end, new_rows = stored["end_us"].to_numpy(), stored["unemitted_rows"].to_numpy()
        bins = max(len(self.edges) - 1, 1)
        place = np.clip(np.searchsorted(self.edges, end, side="right") - 1, 0, bins - 1)
        code = np.where(end == END_OF_TIME_US, -1, place) * len(WAITS) + waits + len(WAITS)
        windows, rows = np.bincount(code), np.bincount(code, new_rows)
        there = np.flatnonzero(windows)
        keys = [
            normalise(column.combine_chunks()) for column in columns_under(stored, "key.", self.plan.key_schema).columns
        ]
        columns = [
            there // len(WAITS) - 1,
            pa.array(WAITS, pa.string()).take(pa.array(there % len(WAITS))),
            windows[there],
            rows[there].astype(np.int64),
            np.full(len(there), factorize_rows(keys, stored.num_rows).count),
        ]
        return pa.table(columns, schema=self.schema)
