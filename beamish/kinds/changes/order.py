"""The order of changes of one slot: by time, or by the columns of ``sequence_by``; then deletes before inserts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.buffers import plain
from beamish.kernels.order import Key, is_orderable, sort_keys
from beamish.kinds.changes.plan import ChangesPlan


def newest_keys(plan: ChangesPlan, time_us: Ints, deletes: Flags, values: pa.Table) -> tuple[list[Key], list[Key]]:
    """Keys to sort changes by, before and after their sequence (see ``contract/operator.py``)."""
    by = plan.options.sequence_by
    before = [time_us] if by is None else sort_keys(plain(values[by].combine_chunks()))
    after = [(~deletes).astype(np.int64)]
    for name in [field.name for field in plan.value_schema if is_orderable(field.type)]:
        after += sort_keys(plain(values[name].combine_chunks()))
    return before, after
