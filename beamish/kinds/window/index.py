"""The index of a shard's segments: what they hold and when something in them is due. It is the store's entry ``index``.

columns (one entry per segment, all int64):
    segment             its number
    windows             number of windows in it
    start_us, end_us    the span from their least start to their greatest end, microseconds since the epoch
    due_us, wake_us     the least watermark (of windows of rows the least reach) and the least clock at which something in it is due; NEVER_US: none
    keeps_until_us      of windows of rows, of which a join lets go as the watermark moves, the least at which one does; else NEVER_US
    inherited_panes     1 if its windows have inherited panes, else 0
metadata (JSON, under ``beamish``): the format, the stage's identity, what of it may change, the clocks, the number of rows
dropped so far by reason, how long a span of ends a segment holds, and how many rows were numbered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.store import Store
from beamish.tables.notes import check_format, kind_entry
from beamish.tables.stored_tables import INDEX, WINDOWINGS, naming_entry, table_of, write_entry
from beamish.triggers.trigger import NEVER_US

kind_entry(INDEX, "a stage with windows", beside=[WINDOWINGS])
kind_entry(WINDOWINGS, "a stage with several windowings", beside=[INDEX])

INDEX_COLUMNS = ("segment", "windows", "start_us", "end_us", "due_us", "wake_us", "keeps_until_us", "inherited_panes")

IndexColumns = dict[str, NDArray[np.int64]]


def empty_index() -> IndexColumns:
    """The index of no segments."""
    return {name: np.empty(0, dtype=np.int64) for name in INDEX_COLUMNS}


def read_index_entry(store: Store) -> tuple[IndexColumns, dict[str, Any]] | None:
    """The index's columns and metadata; None: nothing was stored yet.

    Raises:
        StateError: its bytes are not what was written, or of another format.
    """
    stored = store.get(INDEX)
    if stored is None:
        return None
    table = table_of(INDEX, stored)
    with naming_entry(INDEX):
        about: dict[str, Any] = json.loads(table.schema.metadata[b"beamish"])
        check_format(about["format"])
        if "keeps_until_us" not in table.schema.names:  # as it was before
            table = table.append_column("keeps_until_us", pa.array(np.full(table.num_rows, NEVER_US)))
        return {name: table[name].to_numpy().copy() for name in INDEX_COLUMNS}, about


def write_index_entry(store: Store, index: IndexColumns, about: Mapping[str, Any]) -> None:
    """Write the index."""
    table = pa.table(dict(index)).replace_schema_metadata({"beamish": json.dumps(about)})
    write_entry(store, INDEX, table)


def without(index: IndexColumns, segments: NDArray[np.int64]) -> IndexColumns:
    """The index without some segments."""
    kept = ~np.isin(index["segment"], segments)
    return {name: column[kept] for name, column in index.items()}


def with_rows(index: IndexColumns, rows: Sequence[Sequence[int]]) -> IndexColumns:
    """The index with further segments, one row each."""
    if not rows:
        return index
    new = np.array(rows, dtype=np.int64)
    return {name: np.concatenate([index[name], new[:, i]]) for i, name in enumerate(INDEX_COLUMNS)}
