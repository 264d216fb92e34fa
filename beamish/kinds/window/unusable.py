"""Rows that cannot be used before they are in a shard, where they are dropped and the query goes on (docs/rules/output.md#errors).

They travel to their shard as others do, each in a payload that says what was raised with it (packing.py), and are dropped there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.contract.drops import ERROR
from beamish.errors import NumericOverflowError, UserFunctionError
from beamish.kernels.arrays import Ints
from beamish.kernels.halves import failing
from beamish.kinds.window.drops import drop_from_no_window
from beamish.kinds.window.packing import about, check_numbers, unpack
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.step import Step


def wanted_and_unusable(
    plans: Sequence[WindowPlan], number: int, rows: pa.Table
) -> list[tuple[pa.Table, dict[str, Any]]]:
    """Each row of which the condition cannot be asked, or whose number cannot be counted with, and why; then those that meet the condition.

    The plans are of stages that take the same rows, under the same options but for their windows.
    """
    if not plans[0].options.drops_errors:
        return [(plans[0].only_wanted(number, rows), {})]

    def tried(at: Ints) -> None:
        _wanted(plans, number, rows.take(pa.array(at)))

    try:
        return [(_wanted(plans, number, rows), {})]
    except (UserFunctionError, NumericOverflowError):
        each = np.split(np.arange(rows.num_rows), np.arange(1, rows.num_rows))
        errors = [(int(at[0]), message) for at, message in failing(each, tried)]
        kept = np.setdiff1d(np.arange(rows.num_rows), [at for at, _ in errors])
        wanted = _wanted(plans, number, rows.take(pa.array(kept)))
        return [*((rows.slice(at, 1), {"error": message}) for at, message in errors), (wanted, {})]


def _wanted(plans: Sequence[WindowPlan], number: int, rows: pa.Table) -> pa.Table:
    wanted = plans[0].only_wanted(number, rows)
    for plan in plans:
        check_numbers(plan, wanted)
    return wanted


def drop_unusable(step: Step, payload: bytes) -> None:
    """Drop the rows of a payload that says why."""
    rows, _, _ = unpack([payload])
    drop_from_no_window(step, rows, ERROR, [about(payload)["error"]] * rows.num_rows)
