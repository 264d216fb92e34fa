"""Panes of one stage as the rows of the next."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.kernels.reserved import EVENT_TIME, SIGN, WINDOW_END, WINDOW_START, is_reserved
from beamish.pane import PaneKind
from beamish.plan import Plan
from beamish.windows.option import END_OF_TIME_US


def rows_of_panes(plan: Plan, panes: pa.Table) -> pa.Table:
    """The rows that a later stage takes from panes of the stage before.

    Args:
        plan: the later stage's plan.
        panes: in the ``pane_schema`` of the stage before, dropped rows left out.

    Returns:
        the plan's columns and ``EVENT_TIME``.
    """
    columns = {name: panes[name] for name in plan.columns if not is_reserved(name)}
    window = panes["window"].combine_chunks()
    end = _us(window.field("end"), END_OF_TIME_US)
    time = panes["timestamp"].combine_chunks().cast(pa.int64())
    if WINDOW_START in plan.columns:
        columns[WINDOW_START] = _us(window.field("start"), 0)
        columns[WINDOW_END] = end
        time = pc.coalesce(time, pc.subtract(end, 1))
    if plan.signed:
        kind = panes["pane"].combine_chunks().field("kind")
        taken_back = pc.equal(kind, str(PaneKind.RETRACTION)).to_numpy(zero_copy_only=False)
        columns[SIGN] = pa.array(np.where(taken_back, -1, 1).astype(np.int8))
    columns[EVENT_TIME] = time
    return pa.table({name: columns[name] for name in (*plan.columns, EVENT_TIME)})


def _us(times: pa.Array, unknown: int) -> pa.Array:
    return pc.fill_null(times.cast(pa.int64()), unknown)
