"""Default: a pane at the end of the window, and one for every bundle of late rows."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from beamish.triggers.trigger import Now, State, Stateless, Waiting, WindowIndices


@attrs.frozen
class Default(Stateless):
    """Fires whenever the watermark is at or past the window's end; never finished."""

    waits_for_end: ClassVar[bool] = True

    def describe(self) -> str:
        return "when the watermark passes its end, then with every bundle of late rows"

    def can_fire_before_end(self) -> bool:
        return False

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return now.at_end[at].copy()

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return pc.if_else(pa.array(now.at_end[at]), "a further row", now.until_end(at))
