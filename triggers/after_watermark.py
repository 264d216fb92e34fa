"""AfterWatermark: fire when the watermark reaches the end of the window, with optional early and late firings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from beamish.errors import OptionError
from beamish.triggers.default import Always, Default, Repeatedly
from beamish.triggers.trigger import Merge, Now, State, Trigger, Waiting, WindowIndices, joined, read_trigger_or_none


def is_at_end(trigger: Trigger | None) -> bool:
    """Whether a trigger fires at the end of the window, by itself or repeated."""
    while isinstance(trigger, Repeatedly):
        trigger = trigger.trigger
    return isinstance(trigger, (AfterWatermark, Default))


@attrs.frozen
class AfterWatermark(Trigger):
    """Fires once when the watermark reaches the end of the window; before it when ``early`` does, after it when ``late`` does.

    The end is a state, not an edge: a window whose first row is late fires at once. ``early`` and ``late`` repeat. Merging waits
    for the end again unless the merged window is at its end and every source window was past it. Without ``late`` it is finished at the
    end: later rows are dropped.

    Args:
        early: a trigger for panes before the end; None: none.
        late: a trigger for panes after the on-time pane; None: none.

    Raises:
        OptionError: early or late is not a trigger, or waits for the end of the window itself.

    Example:
        >>> from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark
        >>> AfterWatermark(early=AfterProcessingTime("1 minute"), late=AfterCount(1)).describe()
        'before its end 1 minute on the clock after each first new row, then when the watermark reaches its end, then every row'
    """

    early: Trigger | None = attrs.field(default=None, converter=read_trigger_or_none)
    late: Trigger | None = attrs.field(default=None, converter=read_trigger_or_none)
    waits_for_end: ClassVar[bool] = True

    def __attrs_post_init__(self) -> None:
        for name, part, when in (
            ("early", self.early, "before the end"),
            ("late", self.late, "after the on-time pane"),
        ):
            if is_at_end(part):
                raise OptionError(
                    f"AfterWatermark({name}={part!r}): panes {when} cannot wait for the end of the window; use a trigger such as AfterCount, AfterProcessingTime or Always()"
                )

    def describe(self) -> str:
        at_end = "when the watermark reaches its end"
        if self.late is not None:
            at_end += f", then {self.late.describe_repeated()}"
        elif self.early is not None:
            at_end = f"for the last time {at_end}"
        return at_end if self.early is None else f"before its end {self.early.describe_repeated()}, then {at_end}"

    def describe_repeated(self) -> str:
        return AfterWatermark(self.early, Always() if self.late is None else self.late).describe()

    def can_fire_before_end(self) -> bool:
        return self.early is not None and self.early.can_fire_before_end()

    @property
    def parts(self) -> tuple[Trigger, ...]:
        return tuple(Repeatedly(part) for part in (self.early, self.late) if part is not None)

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {"passed": ("bool", False)}

    def _running(self, s: State, at: WindowIndices) -> list[tuple[Trigger, State, Any]]:
        """Each part with its state, and the windows of ``at`` in which it is the current phase."""
        passed = s["passed"][at]
        return [
            (part, state, passed == phase) for part, state, phase in zip(self.parts, s.parts, self._phases, strict=True)
        ]

    @property
    def _phases(self) -> list[bool]:
        """For each part, whether it is the late one."""
        return [phase for phase, part in ((False, self.early), (True, self.late)) if part is not None]

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        now.ask_at_end(at)
        for part, state, running in self._running(s, at):
            sees = running | now.merging
            part.on_rows_columns(state, at[sees], count[sees], now)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        ready = now.at_end[at] & ~s["passed"][at]
        for part, state, running in self._running(s, at):
            ready[running] |= part.should_fire_columns(state, at[running], now)
        return ready

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        before_end = ~s["passed"][at]
        ends = before_end & now.at_end[at]
        for part, state, running in self._running(s, at):
            part.on_fire_columns(state, at[running & ~ends], now)
        for part, state, running in self._running(s, at):
            # The early part is done at the end; the late part clears rows that merging windows showed it early.
            part.reset(state, at[ends | (before_end & ~running)])
        s["passed"][at[ends]] = True
        if self.late is None:
            s.finished[at[ends]] = True

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        passed = m.all(s["passed"]) & now.at_end[m.into]
        s["passed"][m.into] = passed
        for part, state, running in self._running(s, m.into):
            part.on_merge_columns(state, m, now)
            part.reset(state, m.into[~running])
        s.finished[m.into] = passed & (self.late is None)

    def clear(self, s: State, at: WindowIndices) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.clear(state, at)

    def _unfinish(self, s: State, at: WindowIndices) -> None:
        s["passed"][at] = False
        super()._unfinish(s, at)

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        return self.late is None and allowed_lateness_us > 0

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        words = now.until_end(at)
        for (part, state, running), is_late in zip(self._running(s, at), self._phases, strict=True):
            own = part.waits_for_columns(state, at, now)
            words = pc.if_else(
                pa.array(running), own if is_late else joined(words, "; or, before that, for ", own), words
            )
        return words
