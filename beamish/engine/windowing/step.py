"""One step of a shard: the watermark moves, then the clock, then the rows come in (DESIGN.md section 3, "Order").

In a later stage the rows come in first, so that what the stage before fired on time is on time here.

Each of the three asks the windows it concerns, all at once, as columns; see ``firing.py`` for what a firing gives
and ``arrival.py`` for how rows come in.
"""

from __future__ import annotations

import numpy as np

from beamish.engine.state.state import State
from beamish.engine.windowing.firing import fire
from beamish.engine.windowing.inherited_panes import InheritedPanes
from beamish.engine.windowing.output import Output
from beamish.engine.windowing.trigger_tree import TriggerNow
from beamish.engine.windowing.window_table import Indices, WindowTable
from beamish.plan.window_plan import WindowPlan


class Step:
    """What a step works on.

    Attributes:
        table: the windows it has read, changed and made.
        inherited_panes: live panes of windows merged away, which theirs are to retract.
        output: what comes out of it.
        watermark_us, clock_us: where the clocks stand now.
        watermark_before_us: where the watermark stood when the current part of the step began.
    """

    def __init__(self, plan: WindowPlan, state: State, watermark_before_us: int, clock_before_us: int) -> None:
        self.plan, self.state = plan, state
        self.table = WindowTable(plan.options.trigger, plan.key_schema, plan.state_schema, plan.value_schema)
        self.inherited_panes = InheritedPanes()
        self.output = Output(plan)
        self.watermark_us = self.watermark_before_us = watermark_before_us
        self.clock_us = self.clock_before_us = clock_before_us
        state.begin_step()
        if state.rewrites:
            self.load(np.ones(len(state.index["segment"]), dtype=bool))
        if state.changed:
            self._take_up_changes()

    def now(self) -> TriggerNow:
        """The clocks, for the windows in the table at this moment."""
        return TriggerNow(self.table.columns, self.watermark_us, self.clock_us, self.plan.window.merging)

    def load(self, wanted: np.ndarray) -> None:
        """Read the segments for which ``wanted``, one flag per index entry, holds."""
        self.state.load(self.state.segments_where(wanted).tolist(), self.table, self.inherited_panes)

    def pass_watermark(self) -> None:
        """Windows whose end or expiry the watermark passed are asked, or give their last pane and go."""
        self.watermark_us = self.state.clocks.watermark_us
        before, now = self.watermark_before_us, self.watermark_us
        if now > before:
            self.load(self.state.index["due_us"] <= now)
            table = self.table
            end = table["end_us"]
            expired = self.plan.expiry_us(end) <= now
            # In a later stage rows of this step may have merged some away (RULES.md 30).
            open_ = ~table["closed"] & ~table["gone"]
            passed = open_ & (before < end) & (end <= now)
            asked = table["asks_at_end"] & passed & ~expired
            ready = np.flatnonzero(asked)
            ready = ready[self.plan.options.trigger.should_fire_columns(table.trigger, ready, self.now())]
            last = np.flatnonzero(expired & open_)
            fire(self, np.concatenate([ready, last]), np.repeat([False, True], [len(ready), len(last)]))
            table["gone"][expired] = True
            table["touched"][expired | passed] = True
        self.watermark_before_us = now

    def pass_clock(self) -> None:
        """Windows with a wait that the clock has reached are asked."""
        self.clock_us = self.state.clocks.clock_us
        if self.clock_us > self.clock_before_us and self.plan.options.trigger.needs_clock:
            self.load(self.state.index["wake_us"] <= self.clock_us)
            open_ = np.flatnonzero(~self.table["closed"] & ~self.table["gone"])
            wake = self.plan.options.trigger.wakes_at_columns(self.table.trigger, open_)
            self.ask(open_[wake <= self.clock_us])

    def ask(self, at: Indices) -> None:
        """Ask the triggers of these open windows, and fire those that say so."""
        ready = self.plan.options.trigger.should_fire_columns(self.table.trigger, at, self.now())
        fire(self, at[ready], np.zeros(int(ready.sum()), dtype=bool))

    def _take_up_changes(self) -> None:
        """The trigger or the lateness changed since the state was written: windows wait as if their rows came now."""
        waiting = np.flatnonzero(~self.table["closed"])
        self.table["asks_at_end"][waiting] = True
        waiting = waiting[self.table["unemitted_rows"][waiting] > 0]
        self.plan.options.trigger.on_rows_columns(
            self.table.trigger, waiting, self.table["unemitted_rows"][waiting], self.now()
        )
