"""The window of a change, and whether it is a delete."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.pane_columns import Block
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kinds.changes.plan import ChangesPlan


def windows_of(plan: ChangesPlan, rows: pa.Table) -> Block:
    """The windows of rows: ``start_us``, ``end_us`` (int64, microseconds) and ``windowless`` (bool); bounds may be null."""
    count = rows.num_rows
    if plan.options.window is None or pa.types.is_null(rows.schema.field(plan.options.window).type):
        none = np.zeros(count, dtype=np.int64)
        return {"start_us": none, "end_us": none, "windowless": np.ones(count, dtype=bool)}
    window = rows[plan.options.window].combine_chunks()
    windowless = window.is_null().to_numpy(zero_copy_only=False)
    start, end = (_us(window.field(name), unknown) for name, unknown in (("start", 0), ("end", END_OF_TIME_US)))
    bounds = {"start_us": np.where(windowless, 0, start), "end_us": np.where(windowless, 0, end)}
    return {**bounds, "windowless": windowless}


def _us(times: pa.Array, unknown: int) -> Ints:
    return pc.fill_null(times.cast(pa.timestamp("us")).cast(pa.int64()), unknown).to_numpy()  # type: ignore[no-any-return]


def deletes(plan: ChangesPlan, rows: pa.Table) -> Flags:
    """Whether rows delete: bool, one per row; null is false."""
    if plan.options.deleted is None:
        return np.zeros(rows.num_rows, dtype=bool)
    deleted = rows[plan.options.deleted].combine_chunks().cast(pa.bool_())
    return pc.is_in(deleted, pa.array([True])).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
