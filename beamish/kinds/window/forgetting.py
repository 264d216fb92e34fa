"""Keys that had no row for long are forgotten, where all of time is their window (docs/rules/windows.md#forget-after).

A window ends when the watermark is a span past the latest of its rows, so each row moves its end on. When the watermark moves, the
ends that it passes are found as those of all windows are (clock_moves.py). Here is the rest: the latest row of each window, and windows
whose end the watermark has passed already when their rows come, since these are late: they close with the bundle that brings them.
"""

from __future__ import annotations

import numpy as np

from beamish.instants import NO_TIME_US
from beamish.kernels.arrays import NO_VALUE
from beamish.kernels.groups import Groups
from beamish.kinds.window.bundle import Bundle
from beamish.kinds.window.entries import Entries
from beamish.kinds.window.firing import fire
from beamish.kinds.window.step import Step
from beamish.kinds.window.window_table import LATEST
from beamish.triggers.trigger import WindowIndices


def note_latest(step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices) -> None:
    """Entries have come into the windows ``at``, one per group of them: keep the latest event time."""
    if step.plan.forgets:
        time = bundle.last_us[entries.row]
        latest = step.table[LATEST]
        latest[at] = np.maximum(latest[at], groups.greatest(np.where(time == NO_TIME_US, NO_VALUE, time)))


def ask_or_close(step: Step, at: WindowIndices) -> None:
    """Windows that got a row are asked; those whose end is passed already give their last pane and go."""
    table = step.table
    over = table.forgotten_us(at) <= step.watermark_us
    ready = at[~over]
    ready = ready[step.plan.options.trigger.should_fire_columns(table.trigger, ready, step.now())]
    last = at[over]
    fire(step, np.concatenate([ready, last]), np.repeat([False, True], [len(ready), len(last)]))
    table["gone"][last] = True
    table["touched"][last] = True
