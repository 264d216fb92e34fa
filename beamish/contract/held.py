"""Buffered rows of a stage, as ``state().held()`` shows them."""

from __future__ import annotations

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Answer
from beamish.contract.operator import Operator
from beamish.contract.stored import Store
from beamish.contract.updates import TIMESTAMP
from beamish.instants import LATEST_US
from beamish.kernels.buffers import Ints

HIDDEN = ("pane", "dropped", "timestamp")
"""Columns of output rows that are not shown, or elsewhere."""


@attrs.frozen(eq=False)
class HeldRows(Answer):
    """The buffers of shards: the updates that would be emitted now. Subclasses read them.

    Attributes:
        operator: of the stage.
        name: of the buffer.
    """

    operator: Operator
    name: str

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the key columns."""
        return tuple(self.operator.gives.keys)

    @property
    def schema(self) -> pa.Schema:
        """``suppress``, keys, window, values, ``kind``, ``timestamp``, ``since``, ``due``; the last two on the clock that is waited for."""
        own = [field for field in self.operator.rows([]).schema if field.name not in HIDDEN]
        times = [(name, TIMESTAMP) for name in ("timestamp", "since", "due")]
        return pa.schema([("suppress", pa.string()), *own, ("kind", pa.string()), *times])

    def read(self, store: Store) -> pa.Table:
        rows, since_us, due_us = self.held(store)
        name = pa.array([self.name] * rows.num_rows, pa.string())
        own = rows.drop_columns([one for one in HIDDEN if one in rows.schema.names])
        kind = rows["pane"].combine_chunks().field("kind")
        return pa.table(
            [name, *own.columns, kind, rows["timestamp"], _times(since_us), _times(due_us)], schema=self.schema
        )

    def held(self, store: Store) -> tuple[pa.Table, Ints, Ints]:
        """The rows of a shard as output rows; since when each is buffered, and when it is due: int64, microseconds."""
        raise NotImplementedError


def _times(us: Ints) -> pa.Array:
    """Times of int64 microseconds; null outside the years 1 to 9999."""
    return pa.array(us, mask=us > LATEST_US).cast(TIMESTAMP)
