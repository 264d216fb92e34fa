"""What a shard holds at rest, as rows to look at."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.contract.schemas import TIMESTAMP
from beamish.contract.store import Store
from beamish.instants import LATEST_US
from beamish.kernels.arrays import Ints
from beamish.kinds.suppress.due import Due
from beamish.kinds.suppress.held_store import held_store
from beamish.kinds.suppress.held_table import HeldTable
from beamish.kinds.suppress.leaving import net_changes
from beamish.kinds.suppress.newest import unite
from beamish.kinds.suppress.newest_shard import RECENT
from beamish.kinds.suppress.operator import SuppressOperator
from beamish.tables.segmented import Segmented

_HIDDEN = ("pane", "dropped")


def held_schema(operator: SuppressOperator) -> pa.Schema:
    """The columns of what is held: ``suppress``, keys, window, values, ``kind``, ``timestamp``, ``since``, ``due``."""
    own = [field for field in operator.inner.panes([]).schema if field.name not in (*_HIDDEN, "timestamp")]
    times = [(name, TIMESTAMP) for name in ("timestamp", "since", "due")]
    return pa.schema([("suppress", pa.string()), *own, ("kind", pa.string()), *times])


def held_rows(operator: SuppressOperator, store: Store) -> pa.Table:
    """What a shard holds: what would come out of it if all left now.

    Args:
        operator: of the stage.
        store: the shard's.

    Returns:
        rows in ``held_schema``; ``since`` and ``due`` are on the clock that is waited for, null where they are not known.

    Raises:
        StateError: the state was written by another stage or format, or cannot be read.
    """
    shard = operator.inner.open(store)
    entries = held_store(store, operator.suppress.name)
    held = HeldTable(operator.inner.key_schema, operator.inner.value_schema)
    Segmented(entries, held).load(sorted(entries.index["segment"].tolist()))
    if operator.inner.keeps_newest:
        unite(held, operator.inner, np.flatnonzero(held["segment"] != RECENT))
    held["has_pane"][:] |= held["has_parts"]  # parts of windows merged away wait for a pane
    # Each row has its slot's number in place of its pane's.
    held["index"][:], held.taken["index"][:] = np.arange(len(held)), held.taken["owner"]
    at = np.flatnonzero(~held["gone"])
    rows = operator.inner.panes([net_changes(held, operator.inner, at, final=False)])
    pane = rows["pane"].combine_chunks()
    slot = pane.field("index").to_numpy()
    until = operator.suppress.until
    due_us = Due(operator.suppress, operator.inner, shard.clocks).due_us(held)[slot]
    since_us = held["since_clock_us" if until.by_clock else "since_us"][slot]
    own = rows.drop_columns([name for name in (*_HIDDEN, "timestamp") if name in rows.schema.names])
    columns = [*own.columns, pane.field("kind"), rows["timestamp"], _times(since_us), _times(due_us)]
    name = pa.array([operator.suppress.name] * rows.num_rows, pa.string())
    return pa.table([name, *columns], schema=held_schema(operator))


def _times(us: Ints) -> pa.Array:
    """Times of int64 microseconds; null beyond the years that can be said."""
    return pa.array(us, mask=us > LATEST_US).cast(TIMESTAMP)
