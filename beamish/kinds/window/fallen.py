"""The latest window of each key that fell out of what it keeps (retention.py).

It is noted on when the pipeline no longer says ``retain``: a window that fell out came out, and would come out again with less.

columns (one entry per key):
    start, end  int64: the window, by (end, start); microseconds, or numbers of rows
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.store import Store
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kinds.window.plan import WindowPlan
from beamish.tables.keyed_records import NOWHERE, KeyedRecords
from beamish.tables.records import Records
from beamish.tables.segmented_records import Columns

NAME = "fallen"
"""Before the entries of what is noted in a shard's store."""
_NONE = np.iinfo(np.int64).min


@attrs.frozen(eq=False)
class Fallen(Records):
    """The latest window of each key that fell out."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {"start": ("int64", _NONE), "end": ("int64", _NONE)}


class FallenWindows(KeyedRecords[Fallen]):
    """What is noted of the keys of a shard.

    Args:
        plan: the stage's plan.
        store: the shard's.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, plan: WindowPlan, store: Store) -> None:
        self._plan = plan
        super().__init__(plan.key_schema, Fallen, store, NAME)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is noted, as of the last time it was written."""
        return self.next_due is None

    def are_gone(self, keys: pa.Table, start: Ints, end: Ints) -> Flags:
        """Whether windows of keys are at or before the latest that fell out: bool, one per window.

        Args:
            keys: key columns, normalised, one row per window.
            start, end: int64, one per window.
        """
        at = self.find(keys)
        known = np.flatnonzero(at != NOWHERE)
        records, gone = self.records, np.zeros(len(at), dtype=bool)
        last_end, last_start = records["end"][at[known]], records["start"][at[known]]
        gone[known] = (end[known] < last_end) | ((end[known] == last_end) & (start[known] <= last_start))
        return gone

    def note(self, keys: pa.Table, start: Ints, end: Ints) -> None:
        """Windows fell out, the latest of each key."""
        at = self.find(keys, new=True)
        records = self.records
        later = (end > records["end"][at]) | ((end == records["end"][at]) & (start > records["start"][at]))
        records["start"][at[later]], records["end"][at[later]] = start[later], end[later]
        self.touch(at)

    def forget(self, keys: pa.Table) -> None:
        """Nothing is noted of keys any more."""
        at = self.find(keys)
        self.remove(at[at != NOWHERE])

    def save(self, progress: int) -> None:
        """Write what the step has changed; what is expired is forgotten, since its rows are too late by then.

        Args:
            progress: the watermark, or how far the rows of the stream have come; of rows that are counted by key it says nothing.
        """

        def expiry(fallen: Fallen | Columns) -> Ints:
            if self._plan.counts_by_key:
                return np.full(len(fallen["end"]), END_OF_TIME_US)
            return self._plan.expiry_us(fallen["end"])  # type: ignore[no-any-return]

        if self.next_due is not None and self.next_due <= progress:
            self.load_due(progress)
            over = np.flatnonzero(self.alive & (expiry(self.records) <= progress))
            self.remove(over)
        self.save_due(lambda fallen: expiry(fallen) > progress, expiry)

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which something can be forgotten; None: nothing can, or rows say when."""
        return None if self._plan.counts_rows else self.next_due
