"""Rows that cannot be used before they are in a shard, where they are dropped and the query goes on (docs/rules/output.md#errors).

They travel to their shard as others do, each in a payload that says what was raised with it (packing.py), and are dropped there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


def wanted_by(plans: Sequence[WindowPlan], number: int, rows: pa.Table) -> Iterator[tuple[pa.Table, Mapping[str, Any]]]:
    """The rows that meet the condition, and what their payloads say of them: of those that cannot be used, one by one, why.

    Args:
        plans: of stages that take the same rows, under the same options but for their windows.
        number: the number of the input.
        rows: all that came of it.
    """
    if not rows.num_rows:
        return
    if not plans[0].options.drops_errors:
        yield plans[0].only_wanted(number, rows), {}
        return
    wanted, errors = _wanted_and_unusable(plans, number, rows)
    for at, message in errors:
        yield rows.slice(at, 1), {"error": message}
    yield wanted, {}


def _wanted_and_unusable(
    plans: Sequence[WindowPlan], number: int, rows: pa.Table
) -> tuple[pa.Table, list[tuple[int, str]]]:
    """The rows that meet the condition; and each row of which it cannot be asked, or whose number cannot be counted with, and why."""

    def tried(at: Ints) -> None:
        _wanted(plans, number, rows.take(pa.array(at)))

    try:
        return _wanted(plans, number, rows), []
    except (UserFunctionError, NumericOverflowError):
        each = np.split(np.arange(rows.num_rows), np.arange(1, rows.num_rows))
        errors = [(int(at[0]), message) for at, message in failing(each, tried)]
        kept = np.setdiff1d(np.arange(rows.num_rows), [at for at, _ in errors])
        return _wanted(plans, number, rows.take(pa.array(kept))), errors


def _wanted(plans: Sequence[WindowPlan], number: int, rows: pa.Table) -> pa.Table:
    wanted = plans[0].only_wanted(number, rows)
    for plan in plans:
        check_numbers(plan, wanted)
    return wanted


def drop_unusable(step: Step, payload: bytes) -> None:
    """Drop the rows of a payload that says why."""
    rows, _, _ = unpack([payload])
    drop_from_no_window(step, rows, ERROR, [about(payload)["error"]] * rows.num_rows)
