"""The updates that shards buffer, as rows."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.clocks import Clocks
from beamish.contract.held import HeldRows
from beamish.contract.store import Store
from beamish.kernels.arrays import Ints
from beamish.kinds.suppress.due import Due
from beamish.kinds.suppress.held_store import entry_name, held_store
from beamish.kinds.suppress.held_table import HeldTable
from beamish.kinds.suppress.leaving import net_changes
from beamish.kinds.suppress.newest import unite
from beamish.kinds.suppress.newest_shard import RECENT
from beamish.kinds.suppress.option import Suppress
from beamish.tables.segmented import Segmented


@attrs.frozen(eq=False)
class SuppressedRows(HeldRows):
    """The updates that a suppress holds.

    Attributes:
        suppress: what holds them.
    """

    suppress: Suppress

    def needs(self, notes: Store) -> Iterable[str]:
        return (entry_name(self.name, ""),)

    def held(self, store: Store) -> tuple[pa.Table, Ints, Ints]:
        held, clocks = self._slots(store)
        # Each row has its slot's number in place of its pane's.
        held["index"][:], held.taken["index"][:] = np.arange(len(held)), held.taken["owner"]
        at = np.flatnonzero(~held["gone"])
        rows = self.operator.panes([net_changes(held, self.operator, at, final=False)])
        slot = rows["pane"].combine_chunks().field("index").to_numpy()
        due_us = Due(self.suppress, self.operator, clocks).due_us(held)[slot]
        return rows, held["since_clock_us" if self.suppress.until.by_clock else "since_us"][slot], due_us

    def _slots(self, store: Store) -> tuple[HeldTable, Clocks]:
        """All slots of a shard, and its clocks."""
        entries = held_store(store, self.suppress.name)
        held = HeldTable(self.operator.key_schema, self.operator.value_schema)
        Segmented(entries, held).load(sorted(entries.index["segment"].tolist()))
        if self.operator.keeps_newest:
            unite(held, self.operator, np.flatnonzero(held["segment"] != RECENT))
        held["has_pane"][:] |= held["has_parts"]  # parts of merged windows wait for a pane
        return held, self.operator.open(store).clocks
