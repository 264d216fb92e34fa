"""Repeatedly: a trigger again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.triggers.trigger import Merge, Now, Rows, State, Trigger, check_trigger


def _read_trigger(t: Any) -> Trigger:
    return check_trigger("Repeatedly(trigger)", t)


@attrs.frozen
class Repeatedly(Trigger):
    """Fires when ``trigger`` does, which then starts again, wholly; never finished.

    Args:
        trigger: what to repeat.

    Raises:
        OptionError: it is no trigger.
    """

    trigger: Trigger = attrs.field(converter=_read_trigger)

    @property
    def parts(self) -> tuple[Trigger, ...]:
        return (self.trigger,)

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def see(self, s: State, at: Rows, count: Any, now: Now) -> None:
        self.trigger.see(s.parts[0], at, count, now)

    def ready(self, s: State, at: Rows, now: Now) -> Any:
        return self.trigger.ready(s.parts[0], at, now)

    def fire(self, s: State, at: Rows, now: Now) -> None:
        (part,) = s.parts
        self.trigger.fire(part, at, now)
        self.trigger.reset(part, at[part.finished[at]])

    def merge(self, s: State, m: Merge, now: Now) -> None:
        self.trigger.merge(s.parts[0], m, now)

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return False
