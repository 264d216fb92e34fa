"""AfterProcessingTime: fire some time after the first row, on the clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.durations import Duration, read_not_negative
from beamish.triggers.trigger import NEVER_US, Merge, Now, State, Trigger, WindowIndices


@attrs.frozen
class AfterProcessingTime(Trigger):
    """Fires when the clock is at or past ``delay`` after the first row it saw, and is finished.

    Under Repeatedly the wait begins again with the first row after the firing. Merging takes the earliest target
    of the parts; one that has fired in a part starts again.

    Args:
        delay: at least 0; 0 fires with every bundle.

    Raises:
        OptionError: a negative delay.
    """

    delay: Duration = attrs.field(default=Duration(0), converter=read_not_negative)
    needs_clock = True

    def describe(self) -> str:
        return f"{self.delay} on the clock after its first row"

    def describe_repeated(self) -> str:
        return f"{self.delay} on the clock after each first new row"

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {"target_us": ("int64", NEVER_US)}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        # AfterEach shows rows to parts that are finished too; their wait is over.
        waiting = at[(s["target_us"][at] == NEVER_US) & ~s.finished[at]]
        s["target_us"][waiting] = now.clock_us + self.delay.us

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return s["target_us"][at] <= now.clock_us

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        self.clear(s, at)
        s.finished[at] = True

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        s["target_us"][m.into] = m.least(s["target_us"])

    def wakes_at_columns(self, s: State, at: WindowIndices) -> Any:
        return s["target_us"][at]
