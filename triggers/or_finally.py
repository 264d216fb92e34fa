"""OrFinally: a trigger until another one fires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.triggers.after_watermark import AfterWatermark
from beamish.triggers.default import Default
from beamish.triggers.never import Never
from beamish.triggers.trigger import Merge, Now, Rows, State, Trigger, check_trigger


def _read_main(t: Any) -> Trigger:
    return check_trigger("OrFinally(main)", t)


def _read_finally(t: Any) -> Trigger:
    return check_trigger("OrFinally(finally_)", t)


@attrs.frozen
class OrFinally(Trigger):
    """Fires when ``main`` or ``finally_`` does; finished when ``finally_`` fires or ``main`` is finished.

    Both see all rows. When ``finally_`` is ready only it fires and ``main`` is cleared. After merging it is
    finished if one of the two is.

    Args:
        main: the trigger that runs.
        finally_: the trigger that ends it.

    Raises:
        OptionError: one of them is no trigger.
    """

    main: Trigger = attrs.field(converter=_read_main)
    finally_: Trigger = attrs.field(converter=_read_finally)

    @property
    def parts(self) -> tuple[Trigger, ...]:
        return self.main, self.finally_

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def see(self, s: State, at: Rows, count: Any, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.see(state, at, count, now)

    def ready(self, s: State, at: Rows, now: Now) -> Any:
        main, finally_ = s.parts
        return self.main.ready(main, at, now) | self.finally_.ready(finally_, at, now)

    def fire(self, s: State, at: Rows, now: Now) -> None:
        main, finally_ = s.parts
        ends = self.finally_.ready(finally_, at, now)
        self.finally_.fire(finally_, at[ends], now)
        self.main.clear(main, at[ends])
        self.main.fire(main, at[~ends], now)
        s.finished[at] = ends | main.finished[at]

    def merge(self, s: State, m: Merge, now: Now) -> None:
        for part, state in zip(self.parts, s.parts, strict=True):
            part.merge(state, m, now)
        s.finished[m.into] = s.parts[0].finished[m.into] | s.parts[1].finished[m.into]

    def may_lose_rows(self, allowed_lateness_us: int) -> bool:
        at_the_end = allowed_lateness_us == 0 and self.finally_ in (AfterWatermark(), Default())
        harmless = isinstance(self.finally_, Never) or at_the_end
        return self.main.may_lose_rows(allowed_lateness_us) or not harmless
