"""Updates: what a step of a shard gives, as columns; rows of output are made of them last (``Operator.rows``).

A suppress takes them up in order. For one joins are not yet one row per pair, panes that discard are still accumulators, and
a window that merged away is named in the step in which it did.
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
    """What a step gives, or a part of it, in order.

    Attributes:
        columns: n updates (``pane_columns.py``), with their timestamps as ``pane_time_us``.
        keys: their key columns, n rows.
        values: the other columns: the output's, or accumulators where panes discard; n rows, or no columns where all are null.
        dropped: n structs, the output's column ``dropped``; None: null.
        since_us: int64[n], microseconds since the epoch: since when each counts as held; None: since its timestamp.
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
        """Rows that are in no window, as one pane each, with their timestamps; ``keys``: their key columns, for a suppress."""
        block = make_block(len(time_us), windowless=True, is_first=True, is_last=True, pane_time_us=time_us)
        return cls(block, rows.select(keys), rows.drop_columns(keys))

    def where(self, wanted: Flags) -> Updates:
        """Those that are wanted: bool, one per update."""
        if wanted.all():
            return self
        at = pa.array(np.flatnonzero(wanted))
        return Updates(
            {name: column[wanted] for name, column in self.columns.items()},
            self.keys.take(at) if self.keys.num_columns else self.keys.slice(0, len(at)),  # else it would have no rows
            self.values.take(at),
            None if self.dropped is None else self.dropped.take(at),
            None if self.since_us is None else self.since_us[wanted],
        )

    def rows(self, schema: pa.Schema) -> pa.Table:
        """Panes, retractions and dropped rows as rows of output in this schema."""
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
