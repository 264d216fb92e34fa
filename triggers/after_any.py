"""AfterAny: fire when one of several triggers does."""

from __future__ import annotations

from typing import Any

from beamish.triggers.composite import Composite
from beamish.triggers.trigger import Merge, Now, Rows, State


class AfterAny(Composite):
    """Fires when any part is finished or ready, and is finished (Beam: AfterFirst/AfterAny).

    The ready parts fire, the others are cleared. After merging it is finished if a part is.
    """

    __slots__ = ()

    def ready(self, s: State, at: Rows, now: Now) -> Any:
        ready = now.at_end[at] & False
        for part, state in zip(self.parts, s.parts, strict=True):
            ready |= state.finished[at] | part.ready(state, at, now)
        return ready

    def fire(self, s: State, at: Rows, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            fires = part.ready(state, at, now) & ~state.finished[at]
            part.fire(state, at[fires], now)
            part.clear(state, at[~fires])
        s.finished[at] = True

    def merge(self, s: State, m: Merge, now: Now) -> None:
        s.finished[m.into] = False
        for part, state in zip(self.parts, s.parts, strict=True):
            part.merge(state, m, now)
            s.finished[m.into] |= state.finished[m.into]
