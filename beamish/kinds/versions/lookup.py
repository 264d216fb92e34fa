"""Look up the interval of a key that contains a time, for many keys and times at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from beamish.kernels.arrays import Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups


def codes_of_both(
    keys: Sequence[pa.Array], others: Sequence[pa.Array], count: int, other_count: int
) -> tuple[Groups, Groups]:
    """Number the keys of two sets of rows: equal keys have equal numbers.

    Args:
        keys, others: key columns, of the same types.
        count, other_count: numbers of rows.
    """
    both = [pa.chunked_array([one, other]).combine_chunks() for one, other in zip(keys, others, strict=True)]
    groups = factorize_rows(both, count + other_count)
    return groups[:count], groups[count:]


def find_at(code: Ints, from_us: Ints, to_us: Ints, of: Ints, time_us: Ints) -> Ints:
    """Find the interval of a key that contains a time.

    Args:
        code, from_us, to_us: int64, one per interval: its key, start and exclusive end; those of a key do not overlap.
        of, time_us: int64, one per time: its key, and the time.

    Returns:
        int64, one per time: the interval; -1: none.
    """
    if not len(code):
        return np.full(len(of), -1, dtype=np.int64)
    times = np.unique(from_us)
    place = code * (len(times) + 1) + np.searchsorted(times, from_us, side="left") + 1
    order = np.argsort(place, kind="stable")
    wanted = of * (len(times) + 1) + np.searchsorted(times, time_us, side="right")
    at = np.searchsorted(place[order], wanted, side="right") - 1
    found = order[np.maximum(at, 0)]
    fits = (at >= 0) & (code[found] == of) & (from_us[found] <= time_us) & (time_us < to_us[found])
    return np.where(fits, found, -1)
