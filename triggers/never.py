"""Never: no pane but the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.triggers.trigger import Merge, Now, Rows, State, Trigger


@attrs.frozen
class Never(Trigger):
    """Never fires: a window's only pane is the last one, when it expires."""

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def see(self, s: State, at: Rows, count: Any, now: Now) -> None:
        pass

    def ready(self, s: State, at: Rows, now: Now) -> Any:
        return now.at_end[at] & False

    def fire(self, s: State, at: Rows, now: Now) -> None:
        if len(at):
            raise AssertionError("Never is never ready; a composite fired it all the same")

    def merge(self, s: State, m: Merge, now: Now) -> None:
        pass

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False
