"""The updates that shards hold, as rows to look at."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.at_rest import Answer
from beamish.contract.clocks import Clocks
from beamish.contract.operator import Operator
from beamish.contract.schemas import TIMESTAMP
from beamish.contract.store import Store
from beamish.instants import LATEST_US
from beamish.kernels.arrays import Ints
from beamish.kinds.suppress.due import Due
from beamish.kinds.suppress.held_store import entry_name, held_store
from beamish.kinds.suppress.held_table import HeldTable
from beamish.kinds.suppress.leaving import net_changes
from beamish.kinds.suppress.newest import unite
from beamish.kinds.suppress.newest_shard import RECENT
from beamish.kinds.suppress.option import Suppress
from beamish.tables.segmented import Segmented

_HIDDEN = ("pane", "dropped")


@attrs.frozen(eq=False)
class HeldRows(Answer):
    """What shards hold: what would come out of them if all left now.

    Attributes:
        operator: of the stage.
        suppress: what holds it.
    """

    operator: Operator
    suppress: Suppress

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the key columns."""
        return tuple(self.operator.gives.keys)

    @property
    def schema(self) -> pa.Schema:
        """``suppress``, keys, window, values, ``kind``, ``timestamp``, ``since``, ``due``; the last two on the clock that is waited for."""
        own = [field for field in self.operator.panes([]).schema if field.name not in (*_HIDDEN, "timestamp")]
        times = [(name, TIMESTAMP) for name in ("timestamp", "since", "due")]
        return pa.schema([("suppress", pa.string()), *own, ("kind", pa.string()), *times])

    def needs(self, notes: Store) -> Iterable[str]:
        return (entry_name(self.suppress.name, ""),)

    def read(self, store: Store) -> pa.Table:
        held, clocks = self._held(store)
        # Each row has its slot's number in place of its pane's.
        held["index"][:], held.taken["index"][:] = np.arange(len(held)), held.taken["owner"]
        at = np.flatnonzero(~held["gone"])
        rows = self.operator.panes([net_changes(held, self.operator, at, final=False)])
        pane = rows["pane"].combine_chunks()
        slot = pane.field("index").to_numpy()
        due_us = Due(self.suppress, self.operator, clocks).due_us(held)[slot]
        since_us = held["since_clock_us" if self.suppress.until.by_clock else "since_us"][slot]
        own = rows.drop_columns([name for name in (*_HIDDEN, "timestamp") if name in rows.schema.names])
        columns = [*own.columns, pane.field("kind"), rows["timestamp"], _times(since_us), _times(due_us)]
        name = pa.array([self.suppress.name] * rows.num_rows, pa.string())
        return pa.table([name, *columns], schema=self.schema)

    def _held(self, store: Store) -> tuple[HeldTable, Clocks]:
        """All slots of a shard, and where its clocks stand."""
        entries = held_store(store, self.suppress.name)
        held = HeldTable(self.operator.key_schema, self.operator.value_schema)
        Segmented(entries, held).load(sorted(entries.index["segment"].tolist()))
        if self.operator.keeps_newest:
            unite(held, self.operator, np.flatnonzero(held["segment"] != RECENT))
        held["has_pane"][:] |= held["has_parts"]  # parts of windows merged away wait for a pane
        return held, self.operator.open(store).clocks


def _times(us: Ints) -> pa.Array:
    """Times of int64 microseconds; null beyond the years that can be said."""
    return pa.array(us, mask=us > LATEST_US).cast(TIMESTAMP)
