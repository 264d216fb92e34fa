"""The working state of one step of a shard: loaded windows, output so far, and clocks.

The order of events in a step is in shard.py.
"""

from __future__ import annotations

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.drops import Drops
from beamish.kernels.arrays import Ints
from beamish.kinds.window.bundle import Bundle
from beamish.kinds.window.error_context import naming_window
from beamish.kinds.window.output import Output
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.state import State
from beamish.kinds.window.trigger_tree import TriggerNow
from beamish.tables.working_table import Columns
from beamish.triggers.trigger import WindowIndices


@attrs.frozen(eq=False)
class Mark:
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
        parts: those of the state.
        windows: those it has read, changed and made.
        table: the same as a table.
        drops: the rows that it drops.
        output: what comes out of it.
        watermark_us, clock_us: where the clocks stand now.
        watermark_before_us: where the watermark stood when the current part of the step began.
        taken: rows put into windows so far, once per window.
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

    def now(self) -> TriggerNow:
        """The clocks, for the windows in the table at this moment."""
        merging = self.plan.window.merging
        progress = self.progress(np.arange(len(self.table)))
        return TriggerNow(self.table.columns, progress, self.clock_us, merging, self._values_of)

    def progress(self, at: WindowIndices) -> int | Ints:
        """How far what windows are cut by has come, for the windows ``at``: the watermark; of windows of rows their group's reach."""
        return self.state.progress.of_windows(self, at)

    def progress_before(self, at: WindowIndices) -> int | Ints:
        """The same when the current part of the step began."""
        return self.state.progress.before(self, at)

    def progress_of_rows(self, bundle: Bundle, rows: Ints) -> int | Ints:
        """The same for the windows of rows of a bundle."""
        return self.state.progress.of_rows(self, bundle, rows)

    def over_us(self, at: WindowIndices) -> Ints | None:
        """The watermark at which windows are over, before their end; None: none is."""
        each = [over for part in self.parts if (over := part.over_us(self.table, at)) is not None]
        return np.minimum.reduce(each) if each else None

    def begin_part(self) -> None:
        """End a part of the step: the watermark's, the clock's or the rows'."""
        self.watermark_before_us = self.watermark_us
        self.state.progress.begin_part()

    def mark(self) -> Mark:
        """A savepoint for ``go_back``; pools only grow, and are left unchanged."""
        columns = {name: column.copy() for name, column in self.table.columns.items()}
        companions = {name: column.copy() for name, column in self.table.companion_rows.columns.items()}
        counts = dict(self.state.note.dropped), self.taken, self.late_by_us
        return Mark(columns, companions, frozenset(self.windows.read), self.output.mark(), *counts)

    def go_back(self, mark: Mark) -> None:
        """Roll back; segments loaded since are unloaded."""
        self.table.columns.update({name: column.copy() for name, column in mark.columns.items()})
        self.table.companion_rows.columns = {name: column.copy() for name, column in mark.companions.items()}
        self.output.go_back(mark.output)
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
