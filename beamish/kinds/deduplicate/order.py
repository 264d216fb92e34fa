"""The first row of a bundle among duplicates."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from beamish.kernels.arrays import Ints
from beamish.kernels.buffers import plain
from beamish.kernels.order import Key, is_orderable, run_starts, sort_keys, sort_order


def first_come(at: Ints, by: Sequence[Key], rows: pa.Table, read: Collection[str]) -> Ints:
    """Order rows by keys, then by the columns that something reads, by name, then by the others: positions in ``at``.

    Args:
        at: int64, the rows to order.
        by: sort keys of all ``rows``, such as the event time; most significant first.
        rows: the columns; those of types without an order are skipped. They only break ties.
        read: the names of the columns that affect the output.
    """
    own = [key[at] for key in by]
    order = sort_order(own)
    new = run_starts([key[order] for key in own])
    tied = np.flatnonzero(~new | np.append(~new[1:], False))
    if len(tied):
        of = order[tied]
        order = order.copy()
        order[tied] = of[sort_order([*(key[of] for key in own), *_keys(rows.take(pa.array(at[of])), read)])]
    return order


def _keys(rows: pa.Table, read: Collection[str]) -> list[Key]:
    names = sorted(name for name in rows.schema.names if is_orderable(rows.schema.field(name).type))
    names.sort(key=lambda name: name not in read)
    return [key for name in names for key in sort_keys(plain(rows[name].combine_chunks()))]
