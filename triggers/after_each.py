"""AfterEach: several triggers, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.triggers.composite import Composite
from beamish.triggers.trigger import Merge, Now, State, Trigger, Waiting, WindowIndices


class AfterEach(Composite):
    """Fires when the current part does; moves to the next when it is finished; finished with the last.

    Only the current part sees rows; in merging windows all do, and the parts not reached are cleared at a firing. Merging merges
    the parts in order up to the first unfinished one; the rest is reset.

    Example:
        >>> from beamish.triggers import AfterCount, AfterEach
        >>> AfterEach(AfterCount(1), AfterCount(10)).describe()
        'in turn (after 1 row; after 10 rows)'
    """

    __slots__ = ()
    _fires = "in turn"

    def can_fire_before_end(self) -> bool:
        return self.parts[0].can_fire_before_end()

    def _current(self, s: State, at: WindowIndices) -> Iterator[tuple[Trigger, State, Any]]:
        """Each part with its state, and the windows of ``at`` in which it is the current one."""
        reached = np.ones(len(at), dtype=bool)
        for part, state in zip(self.parts, s.parts, strict=True):
            finished = state.finished[at]
            yield part, state, reached & ~finished
            reached = reached & finished

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        for part, state, current in self._current(s, at):
            sees = current | now.merging
            part.on_rows_columns(state, at[sees], count[sees], now)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        ready = np.zeros(len(at), dtype=bool)
        for part, state, current in self._current(s, at):
            ready[current] = part.should_fire_columns(state, at[current], now)
        return ready

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        passed = np.zeros(len(at), dtype=bool)
        finished = np.ones(len(at), dtype=bool)
        for part, state, current in list(self._current(s, at)):
            if now.merging:
                part.clear(state, at[passed])
            part.on_fire_columns(state, at[current], now)
            passed |= current
            finished &= state.finished[at]
        s.finished[at] = finished

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        reached = np.ones(len(m.into), dtype=bool)
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_merge_columns(state, m.only(reached), now)
            part.reset(state, m.into[~reached])
            reached = reached & state.finished[m.into]
        s.finished[m.into] = reached

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return self.parts[-1].may_lose_rows(allowed_lateness_us)

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        words = pa.array(["nothing but its expiry"] * len(at), pa.string())
        for part, state, current in self._current(s, at):
            words = pc.if_else(pa.array(current), part.waits_for_columns(state, at, now), words)
        return words
