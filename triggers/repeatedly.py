"""Repeatedly: repeat a trigger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pyarrow as pa

from beamish.triggers.trigger import Merge, Now, State, Trigger, Waiting, WindowIndices, read_trigger


@attrs.frozen
class Repeatedly(Trigger):
    """Fires when ``trigger`` does, and resets it when it is finished; never finished itself.

    Args:
        trigger: what to repeat.

    Raises:
        OptionError: not a trigger.

    Example:
        >>> from beamish.triggers import AfterProcessingTime, Repeatedly
        >>> Repeatedly(AfterProcessingTime("1 minute")).describe()
        '1 minute on the clock after each first new row'
    """

    trigger: Trigger = attrs.field(converter=read_trigger)

    def describe(self) -> str:
        return self.trigger.describe_repeated()

    def describe_repeated(self) -> str:
        return self.describe()

    def can_fire_before_end(self) -> bool:
        return self.trigger.can_fire_before_end()

    @property
    def parts(self) -> tuple[Trigger, ...]:
        return (self.trigger,)

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        self.trigger.on_rows_columns(s.parts[0], at, count, now)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return self.trigger.should_fire_columns(s.parts[0], at, now)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        (part,) = s.parts
        self.trigger.on_fire_columns(part, at, now)
        self.trigger.reset(part, at[part.finished[at]])

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        self.trigger.on_merge_columns(s.parts[0], m, now)

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return self.trigger.waits_for_columns(s.parts[0], at, now)
