"""AfterAll: fire when all of several triggers have something to say."""

from __future__ import annotations

from typing import Any

from beamish.triggers.composite import Composite
from beamish.triggers.trigger import Merge, Now, Rows, State


class AfterAll(Composite):
    """Fires when every part is finished or ready, and is finished.

    Its unfinished parts see the rows, and fire with it. After merging it is finished if all parts are.
    """

    __slots__ = ()

    def see(self, s: State, at: Rows, count: Any, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            unfinished = ~state.finished[at]
            part.see(state, at[unfinished], count[unfinished], now)

    def ready(self, s: State, at: Rows, now: Now) -> Any:
        ready = now.at_end[at] | True
        for part, state in zip(self.parts, s.parts, strict=True):
            ready &= state.finished[at] | part.ready(state, at, now)
        return ready

    def fire(self, s: State, at: Rows, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.fire(state, at[~state.finished[at]], now)
        s.finished[at] = True

    def merge(self, s: State, m: Merge, now: Now) -> None:
        finished = now.at_end[m.into] | True
        for part, state in zip(self.parts, s.parts, strict=True):
            part.merge(state, m, now)
            finished &= state.finished[m.into]
        s.finished[m.into] = finished
