"""Never: only the last pane."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.triggers.trigger import Now, State, Stateless, Waiting, WindowIndices


@attrs.frozen
class Never(Stateless):
    """Never fires: a window's only pane is the last one, when it expires."""

    def describe(self) -> str:
        return "only when it expires"

    def can_fire_before_end(self) -> bool:
        return False

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return np.zeros(len(at), dtype=bool)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        if len(at):
            raise AssertionError("Never is never ready; a composite fired it anyway")

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return pa.array(["nothing but its expiry"] * len(at), pa.string())
