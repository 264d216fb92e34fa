"""The working set of one step of a shard: the windows it has read, its output so far, and the clocks.

The order of events in a step is in shard.py.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.drops import Drops
from beamish.contract.keys import any_null
from beamish.contract.updates import COLUMNS, DROPPED_KIND, Block, Updates, make_block
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import NO_VALUE, Ints
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.state import State
from beamish.kinds.window.state.window_table import TriggerNow, naming_window
from beamish.kinds.window.step.bundle import Bundle
from beamish.tables.working_table import Columns, Pool
from beamish.triggers.trigger import WindowIndices


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
        """The current position, for ``rollback``."""
        return len(self._blocks)

    def rollback(self, mark: int) -> None:
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
    assert plan.exploding is not None  # noqa: S101 - asked only of one
    columns = updates.columns
    values = updates.values.column(0).combine_chunks()
    null_key = any_null(updates.keys.columns, len(values))
    row, pairs = plan.exploding.explode(values, columns["kind"] == DROPPED_KIND, null_key)
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


@attrs.frozen(eq=False)
class Savepoint:
    """A savepoint of a step: copies of mutable state."""

    columns: Columns
    companions: Columns
    read: frozenset[int]
    output: int
    dropped: dict[str, int]
    taken: int
    late_by_us: int | None


class Step:
    """The working state of a step.

    Attributes:
        parts: the parts of the state.
        windows: the loaded, changed and new windows.
        table: the same as a table.
        drops: its dropped rows.
        output: its output.
        watermark_us, clock_us: the current clocks.
        watermark_before_us: the watermark when the current part of the step began.
        taken: rows added to windows so far, once per window.
        late_by_us: the maximum lateness of rows dropped from windows; None: none dropped.
    """

    def __init__(self, plan: WindowPlan, state: State, watermark_before_us: int, clock_before_us: int) -> None:
        self.plan, self.state = plan, state
        self.windows = state.begin_step()
        self.table = self.windows.rows
        self.drops = Drops(plan.pane_schema, state.note.dropped)
        self.output = Output(plan, self.drops)
        self.watermark_us = self.watermark_before_us = watermark_before_us
        self.clock_us = self.clock_before_us = clock_before_us
        self.parts = state.parts
        self.taken = 0
        self.late_by_us: int | None = None
        state.progress.begin_step(watermark_before_us)
        if state.rewrites:
            self.windows.load_all()

    def now(self, earliest_us: Ints | None = None) -> TriggerNow:
        """The clocks, for the windows in the table at this moment; ``earliest_us``: of the rows that are shown, per window."""
        merging = self.plan.window.merging
        progress = self.progress(np.arange(len(self.table)))
        return TriggerNow(
            self.table.columns, progress, self.clock_us, merging, self._values_of, earliest_us=earliest_us
        )

    def progress(self, at: WindowIndices) -> int | Ints:
        """The progress of the windows ``at``: the watermark; for count windows the reach of their group."""
        return self.state.progress.of_windows(self, at)

    def progress_before(self, at: WindowIndices) -> int | Ints:
        """The same when the current part of the step began."""
        return self.state.progress.before(self, at)

    @property
    def forwarded_us(self) -> int:
        """The watermark for the next stage."""
        return self.state.progress.forwarded_us(self.watermark_us)

    def progress_of_rows(self, bundle: Bundle, rows: Ints) -> int | Ints:
        """The same for the windows of rows of a bundle."""
        return self.state.progress.of_rows(self, bundle, rows)

    def over_us(self, at: WindowIndices) -> Ints | None:
        """The watermark at which windows expire before their end; None: never."""
        each = [over for part in self.parts if (over := part.over_us(self.table, at)) is not None]
        return np.minimum.reduce(each) if each else None

    def begin_part(self) -> None:
        """End a part of the step: the watermark's, the clock's or the rows'."""
        self.watermark_before_us = self.watermark_us
        self.state.progress.begin_part()

    def mark(self) -> Savepoint:
        """A savepoint for ``rollback``; pools only grow, and are left unchanged."""
        columns = {name: column.copy() for name, column in self.table.columns.items()}
        companions = {name: column.copy() for name, column in self.table.companion_rows.columns.items()}
        counts = dict(self.state.note.dropped), self.taken, self.late_by_us
        return Savepoint(columns, companions, frozenset(self.windows.read), self.output.mark(), *counts)

    def rollback(self, mark: Savepoint) -> None:
        """Roll back; segments loaded since are unloaded."""
        self.table.columns.update({name: column.copy() for name, column in mark.columns.items()})
        self.table.companion_rows.columns = {name: column.copy() for name, column in mark.companions.items()}
        self.output.rollback(mark.output)
        self.windows.read = set(mark.read)
        self.drops.counted.clear()
        self.drops.counted.update(mark.dropped)
        self.taken, self.late_by_us = mark.taken, mark.late_by_us

    def _values_of(self, name: str, at: WindowIndices) -> pa.Array:
        """The values of an accumulation in panes of these windows, if emitted now."""
        bound = next(bound for bound in self.plan.accumulations if bound.name == name)
        state = self.table.state.take(self.table["state_at"][at])
        with naming_window(self.table, at):
            return bound.values(state)

    def load(self, wanted: NDArray[np.bool_]) -> None:
        """Load segments.

        Args:
            wanted: bool, one per entry of the index.
        """
        self.windows.load_where(wanted)
