"""Default: a pane at the end of the window, and one for every bundle of late rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from beamish.triggers.trigger import Merge, Now, Rows, State, Trigger


@attrs.frozen
class Default(Trigger):
    """Fires when the watermark is at or past the window's end whenever it is asked; never finished."""

    waits_for_end: ClassVar[bool] = True

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def see(self, s: State, at: Rows, count: Any, now: Now) -> None:
        now.ask_at_end(at)

    def ready(self, s: State, at: Rows, now: Now) -> Any:
        return now.at_end[at].copy()

    def fire(self, s: State, at: Rows, now: Now) -> None:
        pass

    def merge(self, s: State, m: Merge, now: Now) -> None:
        pass

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False
