"""AfterEach: several triggers, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from beamish.triggers.composite import Composite
from beamish.triggers.trigger import Merge, Now, Rows, State, Trigger


class AfterEach(Composite):
    """Fires when the current part does; goes on to the next when it is finished; finished with the last.

    A row is shown to the current part; in merging windows to all, and the parts not reached are cleared at a
    firing. Merging merges the parts in order up to the first unfinished one; the rest is reset.
    """

    __slots__ = ()

    def _current(self, s: State, at: Rows) -> Iterator[tuple[Trigger, State, Any]]:
        """Each part with its state and in which of the windows ``at`` it is the current one."""
        reached = s.finished[at] | True
        for part, state in zip(self.parts, s.parts, strict=True):
            finished = state.finished[at]
            yield part, state, reached & ~finished
            reached = reached & finished

    def see(self, s: State, at: Rows, count: Any, now: Now) -> None:
        for part, state, current in self._current(s, at):
            shown = current | now.merging
            part.see(state, at[shown], count[shown], now)

    def ready(self, s: State, at: Rows, now: Now) -> Any:
        ready = now.at_end[at] & False
        for part, state, current in self._current(s, at):
            ready[current] = part.ready(state, at[current], now)
        return ready

    def fire(self, s: State, at: Rows, now: Now) -> None:
        passed = s.finished[at] & False
        finished = s.finished[at] | True
        for part, state, current in list(self._current(s, at)):
            if now.merging:
                part.clear(state, at[passed])
            part.fire(state, at[current], now)
            passed |= current
            finished &= state.finished[at]
        s.finished[at] = finished

    def merge(self, s: State, m: Merge, now: Now) -> None:
        reached = now.at_end[m.into] | True
        for part, state in zip(self.parts, s.parts, strict=True):
            part.merge(state, m.only(reached), now)
            part.reset(state, m.into[~reached])
            reached = reached & state.finished[m.into]
        s.finished[m.into] = reached

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return self.parts[-1].may_lose_rows(allowed_lateness_us)
