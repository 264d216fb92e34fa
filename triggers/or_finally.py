"""OrFinally: a trigger until another one fires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pyarrow as pa

from beamish.triggers.after_watermark import AfterWatermark
from beamish.triggers.default import Default
from beamish.triggers.never import Never
from beamish.triggers.trigger import Merge, Now, State, Trigger, Waiting, WindowIndices, joined, read_trigger


@attrs.frozen
class OrFinally(Trigger):
    """Fires when ``main`` or ``finally_`` does; finished when ``finally_`` fires or ``main`` is finished.

    Both see all rows. When ``finally_`` is ready only it fires and ``main`` is cleared. After merging it is finished if either is.

    Args:
        main: the trigger that runs.
        finally_: the trigger that ends it.

    Raises:
        OptionError: one of them is not a trigger.

    Example:
        >>> from beamish.triggers import AfterCount, AfterWatermark, OrFinally, Repeatedly
        >>> OrFinally(Repeatedly(AfterCount(10)), AfterWatermark()).describe()
        'every 10 rows, until it fires for the last time when the watermark passes its end'
    """

    main: Trigger = attrs.field(converter=read_trigger)
    finally_: Trigger = attrs.field(converter=read_trigger)

    def describe(self) -> str:
        return f"{self.main.describe()}, until it fires for the last time {self.finally_.describe()}"

    def describe_repeated(self) -> str:
        return f"repeatedly ({self.describe()})"

    def can_fire_before_end(self) -> bool:
        return self.main.can_fire_before_end() or self.finally_.can_fire_before_end()

    @property
    def parts(self) -> tuple[Trigger, ...]:
        return self.main, self.finally_

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_rows_columns(state, at, count, now)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        main, finally_ = s.parts
        return self.main.should_fire_columns(main, at, now) | self.finally_.should_fire_columns(finally_, at, now)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        main, finally_ = s.parts
        ends = self.finally_.should_fire_columns(finally_, at, now)
        self.finally_.on_fire_columns(finally_, at[ends], now)
        self.main.clear(main, at[ends])
        self.main.on_fire_columns(main, at[~ends], now)
        s.finished[at] = ends | main.finished[at]

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.on_merge_columns(state, m, now)
        s.finished[m.into] = s.parts[0].finished[m.into] | s.parts[1].finished[m.into]

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        at_end: tuple[Trigger, ...] = (AfterWatermark(), Default()) if allowed_lateness_us == 0 else ()
        return self.main.may_lose_rows(allowed_lateness_us) or self.finally_ not in (Never(), *at_end)

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        main, finally_ = (
            part.waits_for_columns(state, at, now) for part, state in zip(self.parts, s.parts, strict=True)
        )
        return joined(main, "; or, for the last time, for ", finally_)
