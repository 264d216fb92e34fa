"""Always: a pane for every bundle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.triggers.trigger import Merge, Now, State, Trigger, Waiting, WindowIndices


@attrs.frozen
class Always(Trigger):
    """Fires whenever it is asked, so with every bundle; never finished."""

    def describe(self) -> str:
        return "with every bundle of rows"

    def describe_repeated(self) -> str:
        return self.describe()

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        pass

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return np.ones(len(at), dtype=bool)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        pass

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        pass

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return pa.array(["a further row"] * len(at), pa.string())
