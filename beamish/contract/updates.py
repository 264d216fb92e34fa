"""Updates: the output of a shard's step, as columns; turned into rows last (``Operator.rows``).

A suppress applies them in order. In them, joins are not yet exploded, discarding panes are still accumulators, and a window that
merged away is listed in the step in which it merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.pane_columns import (
    DROPPED_KIND,
    Block,
    make_block,
    pane_column,
    timestamp_column,
    window_column,
)
from beamish.kernels.arrays import Flags, Ints


@attrs.frozen(eq=False)
class Updates:
    """The output of a step, or a part of it, in order.

    Attributes:
        columns: n updates (``pane_columns.py``), with their timestamps as ``pane_time_us``.
        keys: their key columns, n rows.
        values: the other columns: the output's, or accumulators for discarding panes; n rows, or no columns if all are null.
        dropped: n structs, the output's column ``dropped``; None: null.
        since_us: int64[n], microseconds since the epoch: since when each counts as buffered; None: since its timestamp.
    """

    columns: Block
    keys: pa.Table
    values: pa.Table
    dropped: pa.Array | None = None
    since_us: Ints | None = None

    def __len__(self) -> int:
        return len(self.columns["kind"])

    @classmethod
    def of_rows(cls, rows: pa.Table, time_us: Ints, keys: Sequence[str] = ()) -> Updates:
        """Rows without windows, as one pane each, with their timestamps; ``keys``: their key columns, for a suppress."""
        block = make_block(len(time_us), windowless=True, is_first=True, is_last=True, pane_time_us=time_us)
        return cls(block, rows.select(keys), rows.drop_columns(keys))

    def where(self, wanted: Flags) -> Updates:
        """A subset: bool, one per update."""
        if wanted.all():
            return self
        at = pa.array(np.flatnonzero(wanted))
        return Updates(
            {name: column[wanted] for name, column in self.columns.items()},
            self.keys.take(at)
            if self.keys.num_columns
            else self.keys.slice(0, len(at)),  # else it would have zero rows
            self.values.take(at),
            None if self.dropped is None else self.dropped.take(at),
            None if self.since_us is None else self.since_us[wanted],
        )

    def rows(self, schema: pa.Schema) -> pa.Table:
        """Panes, retractions and dropped rows as output rows with this schema."""
        columns, own = self.columns, dict[str, Any]()
        for table in (self.keys, self.values):
            own |= dict(zip(table.schema.names, table.columns, strict=True))
        own["window"] = window_column(columns, schema.field("window").type)
        own["pane"] = pane_column(columns)
        own["timestamp"] = timestamp_column(columns["pane_time_us"], columns["kind"] == DROPPED_KIND)
        if self.dropped is not None:
            own["dropped"] = self.dropped
        each = [own[field.name] if field.name in own else pa.nulls(len(self), field.type) for field in schema]
        return pa.table(each, schema=schema)
