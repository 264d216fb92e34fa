"""The rows that a step dropped and lists, and why: the output's column ``dropped``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.accumulation import merged_name
from beamish.kernels.arrays import NO_VALUE, Flags, Ints
from beamish.kernels.reserved import INPUT
from beamish.kinds.window.plan import WindowPlan
from beamish.pane import DropReason
from beamish.tables.pool import Pool

REASONS = (
    DropReason.EXPIRED,
    DropReason.WINDOW_FINISHED,
    DropReason.NULL_EVENT_TIME,
    DropReason.EVENT_TIME_OUT_OF_RANGE,
    DropReason.UNMATCHED_REMOVAL,
    DropReason.DUPLICATE,
    DropReason.OUT_OF_RETENTION,
    DropReason.NULL_NUMBER,
    DropReason.ERROR,
)
(
    EXPIRED,
    WINDOW_FINISHED,
    NULL_EVENT_TIME,
    EVENT_TIME_OUT_OF_RANGE,
    UNMATCHED_REMOVAL,
    DUPLICATE,
    OUT_OF_RETENTION,
    NULL_NUMBER,
    ERROR,
) = range(len(REASONS))


class DroppedRows:
    """The rows that a step dropped and lists, in the plan's ``row_type``."""

    def __init__(self, plan: WindowPlan) -> None:
        self._plan = plan
        self._rows = Pool(pa.schema(list(plan.row_type)))
        self._messages = Pool(pa.schema([("message", pa.string())]))

    def append(self, rows: pa.Table, messages: Sequence[str | None] | None = None) -> Ints:
        """Take up rows, and what was raised with each; gives where they are."""
        said = pa.nulls(rows.num_rows, pa.string()) if messages is None else pa.array(messages, pa.string())
        self._messages.append(pa.table([said], ["message"]))
        if self._plan.has_several_inputs:
            return self._rows.append(_by_input(self._plan, rows))
        return self._rows.append(rows.select([field.name for field in self._plan.row_type]))

    def column(self, row_at: Ints, reason: NDArray[np.int8], late_by_us: Ints, dropped: Flags) -> pa.Array:
        """The output's column ``dropped``: null in the rows of output that are no dropped rows."""
        rows = self._rows.take(row_at)
        columns = [
            pa.array([str(name) for name in REASONS]).take(pa.array(reason)),
            pa.array(late_by_us, mask=late_by_us == NO_VALUE),
            *([self._messages.take(row_at)["message"].combine_chunks()] if self._plan.options.drops_errors else []),
            pa.StructArray.from_arrays([c.combine_chunks() for c in rows.columns], fields=list(self._plan.row_type)),
        ]
        fields = list(self._plan.pane_schema.field("dropped").type)
        return pa.StructArray.from_arrays(columns, fields=fields, mask=pa.array(~dropped))


def _by_input(plan: WindowPlan, rows: pa.Table) -> pa.Table:
    """Rows of a merge as one struct per input; only that of the row's own input is not null."""
    which = rows[INPUT].to_numpy()
    structs = []
    for number, input_ in enumerate(plan.row_type):
        columns = [rows[merged_name(input_.name, field.name)].combine_chunks() for field in input_.type]
        mask = pa.array(which != number)
        structs.append(pa.StructArray.from_arrays(columns, fields=list(input_.type), mask=mask))
    return pa.table(structs, schema=pa.schema(list(plan.row_type)))
