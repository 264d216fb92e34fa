"""Effects of progress and of the clock on windows: all affected ones are evaluated at once, as columns (firing.py)."""

from __future__ import annotations

import numpy as np

from beamish.kinds.window.firing import ask, fire
from beamish.kinds.window.step import Step
from beamish.triggers.trigger import WindowIndices


def move_watermark(step: Step) -> None:
    """Windows whose end or expiry the watermark passes, or has passed by a reduced lateness, are evaluated, or emit their last pane and expire."""
    step.watermark_us = step.state.note.clocks.watermark_us
    if step.state.progress.load_due(step):
        pass_ends(step)
    step.begin_part()


def pass_ends(step: Step, came: WindowIndices | None = None) -> None:
    """Windows whose end or expiry is passed are evaluated, or emit their last pane and expire; those ``came`` are evaluated too."""
    table, every = step.table, np.arange(len(step.table))
    before, now = step.progress_before(every), step.progress(every)
    end = table["end_us"]
    expired = step.plan.expiry_us(end) <= now
    over_us = step.over_us(every)
    if over_us is not None:
        expired |= over_us <= now
    # Panes of a stage come in before the watermark moves, and may have merged some away
    # (docs/rules/stages.md#steps-of-later-stages).
    open_ = ~table["closed"] & ~table["gone"]
    passed = open_ & (before < end) & (end <= now)
    asked = table["asks_at_end"] & passed
    for part in step.parts:
        let_go = part.on_progress(step, open_ & ~expired)
        asked = asked if let_go is None else asked | let_go
    if came is not None:
        asked[came] = True
    ready = np.flatnonzero(asked & ~expired)
    ready = ready[step.plan.options.trigger.should_fire_columns(table.trigger, ready, step.now())]
    last = np.flatnonzero(expired & open_)
    fire(step, np.concatenate([ready, last]), np.repeat([False, True], [len(ready), len(last)]))
    table["gone"][expired] = True
    table["touched"][expired | passed] = True


def ask_or_end(step: Step, came: WindowIndices) -> None:
    """Windows that got a row are asked; those that are over by now give their last pane and go."""
    table, over_us = step.table, step.over_us(came)
    over = np.zeros(len(came), dtype=bool) if over_us is None else over_us <= step.watermark_us
    ready, last = came[~over], came[over]
    ready = ready[step.plan.options.trigger.should_fire_columns(table.trigger, ready, step.now())]
    fire(step, np.concatenate([ready, last]), np.repeat([False, True], [len(ready), len(last)]))
    table["gone"][last] = True
    table["touched"][last] = True


def move_clock(step: Step) -> None:
    """Evaluate windows whose target the processing-time clock has reached."""
    step.clock_us = step.state.note.clocks.clock_us
    if step.clock_us > step.clock_before_us and step.plan.options.trigger.needs_clock:
        step.load(step.state.index["wake_us"] <= step.clock_us)
        open_ = np.flatnonzero(~step.table["closed"] & ~step.table["gone"])
        wake = step.plan.options.trigger.wakes_at_columns(step.table.trigger, open_)
        ask(step, open_[wake <= step.clock_us])


def take_up_changes(step: Step) -> None:
    """The trigger or the lateness changed since the state was written: another trigger starts as if the rows arrived now."""
    if step.state.changed.trigger:
        table = step.table
        waiting = np.flatnonzero(~table["closed"])
        table["asks_at_end"][waiting] = True
        waiting = waiting[table["unemitted_rows"][waiting] > 0]
        step.plan.options.trigger.on_rows_columns(table.trigger, waiting, table["unemitted_rows"][waiting], step.now())
    if (
        not step.state.progress.by_watermark
    ):  # what a shorter lateness ends is looked for among what is passed from now on only
        pass_ends(step)
