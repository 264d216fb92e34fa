"""The output of a step: panes, retractions and dropped rows, collected in blocks and returned as updates."""

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
)
from beamish.contract.updates import Updates
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import NO_VALUE, Ints
from beamish.kinds.window.plan import WindowPlan
from beamish.tables.pool import Pool


class Output:
    """Updates in the order of emission."""

    def __init__(self, plan: WindowPlan, drops: Drops) -> None:
        self._plan, self._drops = plan, drops
        self._blocks: list[Block] = []

    def add(self, rows: int, **columns: Any) -> None:
        """Add ``rows`` rows; omitted columns have their default value."""
        if rows:
            self.add_block(make_block(rows, **columns))

    def add_block(self, block: Block) -> None:
        """Add a block of rows."""
        self._blocks.append(block)

    def mark(self) -> int:
        """The current position, for ``go_back``."""
        return len(self._blocks)

    def go_back(self, mark: int) -> None:
        """Discard everything added since."""
        del self._blocks[mark:]

    def updates(self, keys: Pool, values: Pool) -> list[Updates]:
        """All of it.

        Args:
            keys: the window table's keys.
            values: the pool that ``values_at`` of panes and retractions refers to: values, or accumulators.
        """
        if not self._blocks:
            return []
        column = {name: np.concatenate([block[name] for block in self._blocks]) for name in COLUMNS}
        column["pane_time_us"] = pane_times(self._plan, column["pane_time_us"], column["end_us"])
        dropped = self._drops.column(column["dropped_at"]) if self._drops.lists else None
        return [Updates(column, keys.take(column["key_at"]), values.take(column["values_at"]), dropped)]


def exploded(plan: WindowPlan, updates: Updates) -> Updates:
    """Panes of a join as a row per pair."""
    assert plan.join is not None  # noqa: S101 - asked only of one
    columns = updates.columns
    row, pairs = plan.join.explode(updates.values.column(0).combine_chunks(), columns["kind"] == DROPPED_KIND)
    columns, at = {name: entries[row] for name, entries in columns.items()}, pa.array(row)
    # A pane explodes into any number of rows, none of which replaces another (docs/rules/panes.md#pane-change).
    columns["replaces"] = columns["replaces"] & (not plan.options.retracts)
    dropped = None if updates.dropped is None else updates.dropped.take(at)
    return Updates(
        columns,
        updates.keys.take(at),
        pa.table([pairs], schema=pa.schema([plan.pane_schema.field(plan.accumulations[0].name)])),
        dropped,
    )


def pane_times(plan: WindowPlan, pane_time_us: Ints, end_us: Ints) -> Ints:
    """The timestamps of panes, int64 microseconds: with a combiner at most the window's last microsecond.

    Count windows, like the global window, have no end in time.
    """
    if not plan.progress.by_watermark:
        end_us = np.full(len(end_us), END_OF_TIME_US)
    return np.where(pane_time_us == NO_VALUE, end_us - 1, np.minimum(pane_time_us, end_us - 1))
