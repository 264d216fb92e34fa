"""Reading state at rest without the pipeline that wrote it, to look into a checkpoint."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.store import Store
from beamish.kinds.window.segments import LAYOUT
from beamish.tables.segment_store import SegmentStore
from beamish.tables.stored_tables import read_entry, segment_name


@attrs.frozen
class StoredIndex:
    """What a shard's index says.

    Attributes:
        segments: one row per segment, with the columns of ``segments.py``.
        about: the format, the identity, the clocks, the number of dropped rows; empty if nothing was stored.
    """

    segments: pa.Table
    about: dict[str, Any]


def read_index(store: Store) -> StoredIndex:
    """The index of a shard's store.

    Raises:
        StateError: it was written in another format, or cannot be read.
    """
    segments = SegmentStore(store, LAYOUT)
    return StoredIndex(pa.table(segments.index), segments.about)


def read_segment(store: Store, number: int) -> pa.Table:
    """The windows of a segment, as they are stored: see ``segments.py`` for the columns; times are int64 microseconds.

    Raises:
        StateError: the store does not have it, or it cannot be read.
    """
    return read_entry(store, segment_name(number))
