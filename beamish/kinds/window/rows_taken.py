"""The input of a window stage, as rows with the columns of its plan: a source's rows, or panes of another stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.columns import widen
from beamish.contract.conditions import filtered
from beamish.contract.relation import Relation
from beamish.contract.signs import signs_of
from beamish.instants import END_OF_TIME_US, NO_TIME_US
from beamish.kernels.formulas import NO_OTHER
from beamish.kernels.reserved import EVENT_TIME, SIGN, WINDOW_END, WINDOW_START, has_no_event_time
from beamish.kinds.window.plan import WindowPlan


def rows_taken(plan: WindowPlan, number: int, table: pa.Table) -> pa.Table:
    """Convert an input of a window stage to rows.

    Args:
        plan: the stage's plan.
        number: the number of the input.
        table: rows of a source with ``EVENT_TIME``, or panes without dropped rows.

    Returns:
        the plan's columns and ``EVENT_TIME``.
    """
    relation = plan.takes[number]
    columns: dict[str, Any] = {name: table[name] for name in table.schema.names if name in relation.columns.names}
    columns |= _of_panes(plan, table) if relation.is_panes else {EVENT_TIME: _event_times(plan, relation, table)}
    if plan.signed:
        columns[SIGN] = signs_of(relation, table)
    if plan.has_several_inputs:
        schema = plan.schema.append(pa.field(EVENT_TIME, pa.int64()))
        return widen(plan.takes, number, columns, table.num_rows, schema)
    return pa.table({name: columns[name] for name in (*plan.schema.names, EVENT_TIME)})


def only_wanted(plan: WindowPlan, number: int, rows: pa.Table) -> pa.Table:
    """The rows of an input that ``where`` keeps."""
    drop = "add .on_error('drop') and restart from the checkpoint: the row is then emitted as a dropped row"
    way_out = NO_OTHER if plan.signed else drop  # of rows that are taken back each is kept, which it was not
    return filtered(plan.takes[number].where or plan.options.where, rows, way_out)


def _event_times(plan: WindowPlan, relation: Relation, rows: pa.Table) -> Any:
    """The event times of a source's rows; a constant one for rows that need none, within the global window."""
    if has_no_event_time(relation.event_time) and not plan.options.counts_rows:
        return pa.array(np.zeros(rows.num_rows, np.int64))
    return rows[EVENT_TIME]


def _of_panes(plan: WindowPlan, panes: pa.Table) -> dict[str, Any]:
    """The event time of panes, and their windows if the stage inherits them."""
    time = panes["timestamp"].combine_chunks().cast(pa.int64())
    if WINDOW_START not in plan.schema.names:
        return {EVENT_TIME: pc.fill_null(time, NO_TIME_US)}
    window = panes["window"].combine_chunks()
    end = _us(window.field("end"), END_OF_TIME_US)
    return {
        WINDOW_START: _us(window.field("start"), 0),
        WINDOW_END: end,
        EVENT_TIME: pc.coalesce(time, pc.subtract(end, 1)),
    }


def _us(times: pa.Array, unknown: int) -> pa.Array:
    return pc.fill_null(times.cast(pa.int64()), unknown)
