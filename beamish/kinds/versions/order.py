"""The effective change of a key and time (docs/rules/tables.md#versions-ties)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.kernels.arrays import Ints
from beamish.kernels.buffers import plain
from beamish.kernels.comparable import value_keys
from beamish.kernels.order import sort_keys, sort_order


def order_of_changes(changes: pa.Table, code: Ints, time_us: Ints, step: Ints, value: Ints | None = None) -> Ints:
    """Sort changes by key, then time; the last of a key and time is the effective one.

    Args:
        changes: with ``deletes``, the value columns, and ``sequence`` if there is one.
        code: int64, one per change: the number of its key.
        time_us: int64, microseconds.
        step: int64, the number of the step in which it arrived.
        value: int64, ranks of the values, if known already.

    Returns:
        int64, their indices in order.
    """
    sequence = sort_keys(plain(changes["sequence"])) if "sequence" in changes.schema.names else []
    sets = (~changes["deletes"].to_numpy(zero_copy_only=False)).astype(np.int64)
    names = [name for name in changes.schema.names if name.startswith("value.")]
    values = value_keys([changes[name] for name in names]) if value is None else [value]
    return sort_order([code, time_us, *sequence, step, sets, *values])
