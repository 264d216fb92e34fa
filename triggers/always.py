"""Always: a pane for every bundle."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.triggers.trigger import Now, State, Stateless, Waiting, WindowIndices


@attrs.frozen
class Always(Stateless):
    """Fires with every bundle; never finished."""

    def describe(self) -> str:
        return "with every bundle of rows"

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return np.ones(len(at), dtype=bool)

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return pa.array(["a further row"] * len(at), pa.string())
