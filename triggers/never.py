"""Never: no pane but the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.triggers.trigger import Merge, Now, State, Trigger, Waiting, WindowIndices


@attrs.frozen
class Never(Trigger):
    """Never fires: a window's only pane is the last one, when it expires."""

    def describe(self) -> str:
        return "only when it expires"

    def describe_repeated(self) -> str:
        return self.describe()

    def can_fire_before_end(self) -> bool:
        return False

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        pass

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return np.zeros(len(at), dtype=bool)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        if len(at):
            raise AssertionError("Never is never ready; a composite fired it all the same")

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        pass

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return pa.array(["nothing but its expiry"] * len(at), pa.string())
