"""The windows of rows that do not merge: an existing one, or a new one.

Known windows come before the entries' own where both are coded, and are distinct, so the code of a known window is its place among
them, and greater codes are of new ones.
"""

from __future__ import annotations

import numpy as np

from beamish.contract.drops import WINDOW_FINISHED
from beamish.kernels.buffers import Ints
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_from_windows
from beamish.kinds.window.step.entries import Entries, known_and_own
from beamish.kinds.window.step.step import Step
from beamish.windows.within import WithinInput


def load_targets(step: Step, bundle: Bundle, entries: Entries) -> None:
    """Load the segments that may have the windows of entries."""
    progress = step.progress_of_rows(bundle, entries.row)
    step.load(step.state.that_may_have(entries.end_us, step.table.keys, entries.key_at, progress))


def find(step: Step, bundle: Bundle, entries: Entries) -> tuple[Ints, Entries]:
    """The targets of entries for windows that do not merge; entries of closed windows are dropped.

    Returns:
        target: intp[n], indices into the window table.
        entries: the remaining ones, n.
    """
    table = step.table
    load_targets(step, bundle, entries)
    known, windows, own = known_and_own(step, bundle, entries)
    groups = (windows + own).groups()
    code = groups.of[len(known) :]
    first = groups.first()[len(known) :] - len(known)
    new = step.table.append_windows(entries.start_us[first], entries.end_us[first], entries.key_at[first])
    target = np.concatenate([known, new])[code]
    closed, at = table["closed"][target], np.arange(len(known))
    for part in step.parts:
        kept = part.admit_to(step, bundle, entries, code, closed=closed, held=known, of_held=at)
        if kept is not None:
            entries, code, target, closed = entries.only(kept), code[kept], target[kept], closed[kept]
    if isinstance(step.plan.window, WithinInput):
        closed = step.plan.window.whole(entries.row, closed)
    drop_from_windows(step, bundle, entries.only(closed), WINDOW_FINISHED)
    return target[~closed], entries.only(~closed)
