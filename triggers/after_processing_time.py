"""AfterProcessingTime: fire some time after the first row, on the clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.durations import Duration, not_negative
from beamish.triggers.trigger import NEVER_US, Merge, Now, Rows, State, Trigger


def _read_delay(value: Any) -> Duration:
    return not_negative("AfterProcessingTime(delay)", value)


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

    delay: Duration = attrs.field(default=Duration(0), converter=_read_delay)
    needs_clock = True

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {"target_us": ("int64", NEVER_US)}

    def see(self, s: State, at: Rows, count: Any, now: Now) -> None:
        waiting = at[s["target_us"][at] == NEVER_US]
        s["target_us"][waiting] = now.clock_us + int(self.delay)

    def ready(self, s: State, at: Rows, now: Now) -> Any:
        return s["target_us"][at] <= now.clock_us

    def fire(self, s: State, at: Rows, now: Now) -> None:
        self.clear(s, at)
        s.finished[at] = True

    def merge(self, s: State, m: Merge, now: Now) -> None:
        s["target_us"][m.into] = m.least(s["target_us"])

    def wake_us(self, s: State, at: Rows) -> Any:
        return s["target_us"][at]
