"""Default, Always, Never and Repeatedly: at the end of the window and with late rows, with every bundle, only at expiry, again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.triggers.trigger import Merge, Now, State, Stateless, Trigger, Waiting, WindowIndices, read_trigger


@attrs.frozen
class Default(Stateless):
    """Fires whenever the watermark is at or past the window's end; never finished."""

    waits_for_end: ClassVar[bool] = True

    def describe(self) -> str:
        return "when the watermark reaches its end, then with every bundle of late rows"

    def can_fire_before_end(self) -> bool:
        return False

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return now.at_end[at].copy()

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return pc.if_else(pa.array(now.at_end[at]), "a further row", now.until_end(at))


@attrs.frozen
class Always(Stateless):
    """Fires with every bundle; never finished."""

    def describe(self) -> str:
        return "with every bundle of rows"

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return np.ones(len(at), dtype=bool)

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return pa.array(["a further row"] * len(at), pa.string())


@attrs.frozen
class Never(Stateless):
    """Never fires: a window's only pane is the last one, when it expires."""

    def describe(self) -> str:
        return "only when it expires"

    def can_fire_before_end(self) -> bool:
        return False

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return np.zeros(len(at), dtype=bool)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        if len(at):
            raise AssertionError("Never is never ready; a composite fired it anyway")

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return pa.array(["nothing but its expiry"] * len(at), pa.string())


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
