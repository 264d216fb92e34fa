"""The match of a row: the change that was valid at its time, unless it is a delete or too old, or the key is null."""

from __future__ import annotations

import numpy as np

from beamish.kernels.arrays import Ints
from beamish.kinds.as_of.joined import Matches
from beamish.kinds.as_of.left_rows import LeftRows
from beamish.kinds.as_of.plan import AsOfPlan
from beamish.kinds.versions.changes import Changes
from beamish.kinds.versions.packing import null_key


def read_us(plan: AsOfPlan, rows: LeftRows) -> Ints:
    """The times at which the table is read for rows, microseconds."""
    return rows["time_us"] if plan.options.allow_exact_matches else rows["time_us"] - 1


def met(plan: AsOfPlan, rows: LeftRows, changes: Changes, at: Ints) -> Matches:
    """The matches of rows.

    Args:
        plan: the join's.
        rows: n rows.
        changes: of the table.
        at: int64, n: the index of the change that was valid at the time each row reads; -1: none.
    """
    fits = (at >= 0) & ~null_key(rows.cells)
    of = at[fits]
    meets = ~changes["deletes"][of]
    if plan.table.tolerance_us is not None:
        meets &= rows["time_us"][fits] - changes["version_us"][of] <= plan.table.tolerance_us
    found = np.full(len(at), -1, dtype=np.int64)
    found[fits] = np.where(meets, of, -1)
    return Matches(changes, found)
