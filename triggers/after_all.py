"""AfterAll: fire when all of several triggers are ready."""

from __future__ import annotations

from typing import Any

import numpy as np

from beamish.triggers.composite import Composite
from beamish.triggers.trigger import Merge, Now, State, WindowIndices


class AfterAll(Composite):
    """Fires when every part is finished or ready, and is finished.

    Unfinished parts see the rows and fire with it. After merging it is finished if all parts are.

    Example:
        >>> from beamish.triggers import AfterAll, AfterCount, AfterProcessingTime
        >>> AfterAll(AfterCount(100), AfterProcessingTime("1 minute")).describe()
        'at the last of (after 100 rows; 1 minute on the clock after its first row)'
    """

    __slots__ = ()
    _fires = "at the last of"
    _waits = "all of"

    def can_fire_before_end(self) -> bool:
        return all(part.can_fire_before_end() for part in self.parts)

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            unfinished = ~state.finished[at]
            part.on_rows_columns(state, at[unfinished], count[unfinished], now)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        ready = np.ones(len(at), dtype=bool)
        for part, state in zip(self.parts, s.parts, strict=True):
            ready &= state.finished[at] | part.should_fire_columns(state, at, now)
        return ready

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_fire_columns(state, at[~state.finished[at]], now)
        s.finished[at] = True

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        finished = np.ones(len(m.into), dtype=bool)
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_merge_columns(state, m, now)
            finished &= state.finished[m.into]
        s.finished[m.into] = finished
