"""Which of the rows of a bundle comes first, where only one of them counts."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from beamish.kernels.arrays import Ints
from beamish.kernels.buffers import plain
from beamish.kernels.order import Key, is_orderable, sort_keys, sort_order


def first_come(at: Ints, time_us: Ints, rows: pa.Table, read: Collection[str]) -> Ints:
    """Some rows by event time, then by the columns that something reads, by name, then by the others: their places in ``at``.

    Args:
        at: int64, which rows.
        time_us: int64, microseconds, one per row of ``rows``.
        rows: the columns; those whose values have no order are passed over. Only where event times are equal they are looked at.
        read: the names of the columns that change what comes out.
    """
    own_us = time_us[at]
    order = np.argsort(own_us, kind="stable")
    same = np.diff(own_us[order]) == 0
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(tied):
        of = order[tied]
        order[tied] = of[sort_order([own_us[of], *_keys(rows.take(pa.array(at[of])), read)])]
    return order


def _keys(rows: pa.Table, read: Collection[str]) -> list[Key]:
    names = sorted(name for name in rows.schema.names if is_orderable(rows.schema.field(name).type))
    names.sort(key=lambda name: name not in read)
    return [key for name in names for key in sort_keys(plain(rows[name].combine_chunks()))]
