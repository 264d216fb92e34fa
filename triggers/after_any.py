"""AfterAny: fire when one of several triggers does."""

from __future__ import annotations

from typing import Any

import numpy as np

from beamish.triggers.composite import Composite
from beamish.triggers.trigger import Merge, Now, State, WindowIndices


class AfterAny(Composite):
    """Fires when any part is finished or ready, and is finished (Beam: AfterFirst/AfterAny).

    The ready parts fire, the others are cleared. After merging it is finished if a part is.

    Example:
        >>> from beamish.triggers import AfterAny, AfterCount, AfterProcessingTime
        >>> AfterAny(AfterCount(100), AfterProcessingTime("1 minute")).describe()
        'at the first of (after 100 rows; 1 minute on the clock after its first row)'
    """

    __slots__ = ()
    _fires = "at the first of"
    _waits = "the first of"

    def can_fire_before_end(self) -> bool:
        return any(part.can_fire_before_end() for part in self.parts)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        ready = np.zeros(len(at), dtype=bool)
        for part, state in zip(self.parts, s.parts, strict=True):
            ready |= state.finished[at] | part.should_fire_columns(state, at, now)
        return ready

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            fires = part.should_fire_columns(state, at, now) & ~state.finished[at]
            part.on_fire_columns(state, at[fires], now)
            part.clear(state, at[~fires])
        s.finished[at] = True

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        s.finished[m.into] = False
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_merge_columns(state, m, now)
            s.finished[m.into] |= state.finished[m.into]
