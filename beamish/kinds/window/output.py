"""What a step gives: panes, retractions and dropped rows, gathered as blocks of rows and made into one table, or updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from beamish.contract.drops import Drops
from beamish.contract.pane_columns import (
    COLUMNS,
    DROPPED_KIND,
    Block,
    make_block,
    pane_column,
    timestamp_column,
    window_column,
)
from beamish.contract.updates import Updates
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import NO_VALUE, Ints
from beamish.kinds.window.plan import WindowPlan
from beamish.tables.pool import Pool


class Output:
    """Rows of output in the order in which they come out."""

    def __init__(self, plan: WindowPlan, drops: Drops) -> None:
        self._plan, self._drops = plan, drops
        self._blocks: list[Block] = []

    def add(self, rows: int, **columns: Any) -> None:
        """Add ``rows`` rows; a column that is not given has its usual value."""
        if rows:
            self.add_block(make_block(rows, **columns))

    def add_block(self, block: Block) -> None:
        """Add a block of rows."""
        self._blocks.append(block)

    def mark(self) -> int:
        """How much there is, for ``go_back``."""
        return len(self._blocks)

    def go_back(self, mark: int) -> None:
        """Forget what was added since."""
        del self._blocks[mark:]

    def table(self, keys: Pool, values: Pool) -> pa.Table:
        """All rows in the plan's ``pane_schema``."""
        if not self._blocks:
            return self._plan.pane_schema.empty_table()
        column = self._columns()
        rows = keys.take(column["key_at"]), values.take(column["values_at"])
        return pane_table(self._plan, column, *rows, self._drops)

    def updates(self, keys: Pool, values: Pool) -> Updates:
        """All rows as updates; dropped rows in the plan's ``pane_schema`` beside them.

        Args:
            keys: the window table's keys.
            values: what ``values_at`` of panes and retractions points to: values, or accumulators.
        """
        column = self._columns() if self._blocks else make_block(0)
        dropped = column["kind"] == DROPPED_KIND
        of_dropped = self._plan.pane_schema.empty_table()
        if dropped.any():
            own = {name: entries[dropped] for name, entries in column.items()}
            none = Pool(self._plan.value_schema).take(own["values_at"])
            of_dropped = pane_table(self._plan, own, keys.take(own["key_at"]), none, self._drops)
            column = {name: entries[~dropped] for name, entries in column.items()}
        column["pane_time_us"] = pane_times(self._plan, column["pane_time_us"], column["end_us"])
        return Updates(column, keys.take(column["key_at"]), values.take(column["values_at"]), of_dropped)

    def _columns(self) -> Block:
        return {name: np.concatenate([block[name] for block in self._blocks]) for name in COLUMNS}


def pane_table(
    plan: WindowPlan, column: Block, keys: pa.Table, values: pa.Table, drops: Drops | None = None
) -> pa.Table:
    """Rows of output in the plan's ``pane_schema``.

    Args:
        plan: the stage's plan.
        column: n rows.
        keys: their key columns, n rows.
        values: their values, n rows; null for dropped rows.
        drops: lists the dropped rows; None: none is one.
    """
    dropped = column["kind"] == DROPPED_KIND
    if plan.join is not None:
        row, pairs = plan.join.explode(values.column(0).combine_chunks(), dropped)
        column, dropped = {name: entries[row] for name, entries in column.items()}, dropped[row]
        # A pane is rows in any number, none of which stands for another (docs/semantics.md#pane-change).
        column["replaces"] = column["replaces"] & (not plan.options.retracts)
        keys, values = keys.take(pa.array(row)), pa.table([pairs], schema=plan.output_schema)
    columns = [
        *keys.columns,
        window_column(column, plan.window_type),
        *values.columns,
        pane_column(column),
        timestamp_column(pane_times(plan, column["pane_time_us"], column["end_us"]), dropped),
    ]
    if plan.options.lists_dropped:
        drops = drops or Drops(plan.pane_schema, {})
        columns.append(drops.column(column["dropped_at"]))
    return pa.table(columns, schema=plan.pane_schema)


def pane_times(plan: WindowPlan, pane_time_us: Ints, end_us: Ints) -> Ints:
    """The timestamps of panes, int64 microseconds: under a combiner never beyond the window's last microsecond.

    Windows of rows end at no time, as the global window.
    """
    if plan.counts_rows:
        end_us = np.full(len(end_us), END_OF_TIME_US)
    return np.where(pane_time_us == NO_VALUE, end_us - 1, np.minimum(pane_time_us, end_us - 1))
