"""AfterProcessingTime: fire a delay after the first or last row, in processing time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs
import numpy as np
import pyarrow as pa

from beamish.costs import check_span
from beamish.durations import Duration, read_duration, read_not_negative, read_positive_or_none, span_in_words
from beamish.errors import OptionError
from beamish.instants import instant_in_words
from beamish.triggers.trigger import NEVER_US, Merge, Now, State, Trigger, Waiting, WindowIndices, in_words


def delayed_us(time_us: Any, delay: Duration, aligned_to: Duration | None, offset: Duration) -> Any:
    """The targets of delays that start at these times, int64; NEVER_US on overflow."""
    target_us = np.minimum(time_us, NEVER_US - delay.us) + delay.us
    if aligned_to is None:
        return target_us
    rest_us = aligned_to.us - (target_us - offset.us % aligned_to.us) % aligned_to.us
    return np.minimum(target_us, NEVER_US - rest_us) + rest_us


@attrs.frozen
class AfterProcessingTime(Trigger):
    """Fires when the clock is at or past ``delay`` after the first row it saw, and is then finished.

    Under Repeatedly the delay restarts with the first row after the firing. Merging takes the earliest target of the source windows (with
    since="last": the latest); if it has fired in one, it starts again.

    Args:
        delay: at least 0; 0 fires with every bundle, unless it is aligned.
        since: "first"; or "last": each bundle with rows restarts the delay, so it fires after a gap of this length.
        aligned_to: after the delay, wait for its next multiple since 1970, such as "1 minute" for the full minute. Exactly on
            one, wait for the next.
        offset: shifts these multiples; of any sign.

    Raises:
        OptionError: a negative delay; ``since`` is neither; a period not above 0; an offset without ``aligned_to``.

    Example:
        >>> from beamish.triggers import AfterProcessingTime, AfterWatermark, Repeatedly
        >>> AfterWatermark(early=AfterProcessingTime(aligned_to="1 minute")).describe()
        'before its end at each full 1 minute on the clock with new rows, then for the last time when the watermark reaches its end'
        >>> Repeatedly(AfterProcessingTime("10 seconds", since="last")).describe()
        '10 seconds on the clock after the last new row'
    """

    delay: Duration = attrs.field(default=Duration(0), converter=read_not_negative)
    since: Literal["first", "last"] = attrs.field(default="first", kw_only=True)
    aligned_to: Duration | None = attrs.field(default=None, converter=read_positive_or_none, kw_only=True)
    offset: Duration = attrs.field(default=Duration(0), converter=read_duration, kw_only=True)
    needs_clock = True

    def __attrs_post_init__(self) -> None:
        check_span("AfterProcessingTime(delay)", self.delay, "each pane is delayed by this much")
        if self.since not in ("first", "last"):
            raise OptionError(
                f"AfterProcessingTime(since={self.since!r}): must be 'first' or 'last', the row it waits from"
            )
        if self.offset and self.aligned_to is None:
            raise OptionError(
                f"AfterProcessingTime(offset={self.offset!r}): shifts aligned times; add aligned_to='1 minute'"
            )

    def describe(self) -> str:
        return self._describe(f"its {self.since} row", "the next")

    def describe_repeated(self) -> str:
        return self._describe(f"{'each first' if self.since == 'first' else 'the last'} new row", "each")

    def _describe(self, row: str, which: str) -> str:
        if self.aligned_to is None:
            return f"{self.delay} on the clock after {row}"
        full = f"at {which} full {self.aligned_to}" + (f" and {self.offset}" if self.offset else "")
        if not self.delay:
            return f"{full} on the clock with new rows"
        return f"{full} on the clock that is {self.delay} after {row}"

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {"target_us": ("int64", NEVER_US)}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        # AfterEach also shows rows to finished parts; they no longer wait.
        begins = ~s.finished[at]
        if self.since == "first":
            begins &= s["target_us"][at] == NEVER_US
        s["target_us"][at[begins]] = delayed_us(now.clock_us, self.delay, self.aligned_to, self.offset)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return s["target_us"][at] <= now.clock_us

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        self.clear(s, at)
        s.finished[at] = True

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        target_us = s["target_us"]
        if self.since == "first":
            target_us[m.into] = m.least(target_us)
        else:
            latest = m.least(np.where(target_us == NEVER_US, NEVER_US, -target_us))
            target_us[m.into] = np.where(latest == NEVER_US, NEVER_US, -latest)

    def wakes_at_columns(self, s: State, at: WindowIndices) -> Any:
        return s["target_us"][at]

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return in_words(s["target_us"][at], lambda target_us: self._waits_for(target_us, now.clock_us))

    def _waits_for(self, target_us: int, clock_us: int) -> str:
        if target_us == NEVER_US:
            return f"a row, and then {self.describe()}"
        clock = f"the clock to reach {instant_in_words(target_us)}"
        if target_us <= clock_us:
            return f"{clock}, which it has"
        return f"{clock}: {span_in_words(target_us - clock_us)} to go"
