"""Which of the rows of a bundle comes first, where only one of them counts."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from beamish.kernels.arrays import Ints
from beamish.kernels.buffers import plain
from beamish.kernels.order import is_orderable, sort_keys, sort_order


def first_come(time_us: Ints, rows: pa.Table, read: Collection[str]) -> Ints:
    """Rows by event time, then by the columns that something reads, by name, then by the others: their indices.

    Args:
        time_us: int64, microseconds, one per row.
        rows: their columns; those whose values have no order are passed over.
        read: the names of the columns that change what comes out.
    """
    names = sorted(name for name in rows.schema.names if is_orderable(rows.schema.field(name).type))
    names.sort(key=lambda name: name not in read)
    keys = [key for name in names for key in sort_keys(plain(rows[name].combine_chunks()))]
    return sort_order([time_us, *keys])
