"""Always: a pane for every bundle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.triggers.trigger import Merge, Now, Rows, State, Trigger


@attrs.frozen
class Always(Trigger):
    """Fires whenever it is asked, so with every bundle; never finished."""

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def see(self, s: State, at: Rows, count: Any, now: Now) -> None:
        pass

    def ready(self, s: State, at: Rows, now: Now) -> Any:
        return now.at_end[at] | True

    def fire(self, s: State, at: Rows, now: Now) -> None:
        pass

    def merge(self, s: State, m: Merge, now: Now) -> None:
        pass

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False
