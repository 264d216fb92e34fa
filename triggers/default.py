"""Default: a pane at the end of the window, and one for every bundle of late rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from beamish.triggers.trigger import Merge, Now, State, Trigger, Waiting, WindowIndices


@attrs.frozen
class Default(Trigger):
    """Fires when the watermark is at or past the window's end whenever it is asked; never finished."""

    waits_for_end: ClassVar[bool] = True

    def describe(self) -> str:
        return "when the watermark passes its end, then with every bundle of late rows"

    def describe_repeated(self) -> str:
        return self.describe()

    def can_fire_before_end(self) -> bool:
        return False

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        now.ask_at_end(at)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return now.at_end[at].copy()

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        pass

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        pass

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return pc.if_else(pa.array(now.at_end[at]), "a further row", now.until_end(at))
