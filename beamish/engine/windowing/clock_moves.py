"""What a clock that moves does to windows: all that it concerns are asked at once, as columns (firing.py)."""

from __future__ import annotations

import numpy as np

from beamish.engine.windowing.firing import ask, fire
from beamish.engine.windowing.pairs_once import let_go
from beamish.engine.windowing.step import Step


def move_watermark(step: Step) -> None:
    """Windows whose end or expiry the watermark passes are asked, or give their last pane and go."""
    step.watermark_us = step.state.clocks.watermark_us
    before, now = step.watermark_before_us, step.watermark_us
    if now > before:
        step.load(step.state.index["due_us"] <= now)
        table = step.table
        end = table["end_us"]
        expired = step.plan.expiry_us(end) <= now
        # Panes of a stage come in before the watermark moves, and may have merged some away
        # (docs/semantics.md#steps-of-later-stages).
        open_ = ~table["closed"] & ~table["gone"]
        passed = open_ & (before < end) & (end <= now)
        asked = (table["asks_at_end"] & passed | let_go(step, open_ & ~expired)) & ~expired
        ready = np.flatnonzero(asked)
        ready = ready[step.plan.options.trigger.should_fire_columns(table.trigger, ready, step.now())]
        last = np.flatnonzero(expired & open_)
        fire(step, np.concatenate([ready, last]), np.repeat([False, True], [len(ready), len(last)]))
        table["gone"][expired] = True
        table["touched"][expired | passed] = True
    step.watermark_before_us = now


def move_clock(step: Step) -> None:
    """Windows with a wait that the processing-time clock has reached are asked."""
    step.clock_us = step.state.clocks.clock_us
    if step.clock_us > step.clock_before_us and step.plan.options.trigger.needs_clock:
        step.load(step.state.index["wake_us"] <= step.clock_us)
        open_ = np.flatnonzero(~step.table["closed"] & ~step.table["gone"])
        wake = step.plan.options.trigger.wakes_at_columns(step.table.trigger, open_)
        ask(step, open_[wake <= step.clock_us])


def take_up_changes(step: Step) -> None:
    """The trigger or the lateness changed since the state was written: windows wait as if their rows came now."""
    table = step.table
    waiting = np.flatnonzero(~table["closed"])
    table["asks_at_end"][waiting] = True
    waiting = waiting[table["unemitted_rows"][waiting] > 0]
    step.plan.options.trigger.on_rows_columns(table.trigger, waiting, table["unemitted_rows"][waiting], step.now())
