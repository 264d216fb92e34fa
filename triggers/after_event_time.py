"""AfterEventTime: fire when the watermark is a delay past the earliest row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.costs import check_span
from beamish.durations import Duration, read_duration, read_not_negative, read_positive_or_none
from beamish.errors import OptionError
from beamish.instants import instant_in_words
from beamish.triggers.after_processing_time import delayed_us
from beamish.triggers.trigger import NEVER_US, Merge, Now, State, Trigger, Waiting, WindowIndices, in_words


@attrs.frozen
class AfterEventTime(Trigger):
    """Fires when the watermark is at or past ``delay`` after the earliest event time that it saw, and is then finished.

    Under Repeatedly the delay restarts with the earliest row after the firing. A row that the watermark is so far past fires at once.
    Merging takes the earliest target of the source windows; if it has fired in one, it starts again. It does not depend on how rows are
    split into bundles, except that a firing lies between two of them (Flink: ``ContinuousEventTimeTrigger``, there without new rows too).

    Args:
        delay: at least 0.
        aligned_to: after the delay, wait for its next multiple since 1970, such as "1 minute" for each full minute of event time.
            Exactly on one, wait for the next.
        offset: shifts these multiples; of any sign.

    Raises:
        OptionError: a negative delay; a period not above 0; an offset without ``aligned_to``.

    Example:
        >>> from beamish.triggers import AfterEventTime, AfterWatermark, Repeatedly
        >>> AfterWatermark(early=AfterEventTime(aligned_to="1 minute")).describe()
        'before its end at each full 1 minute of event time with new rows, then for the last time when the watermark reaches its end'
        >>> Repeatedly(AfterEventTime("10 seconds")).describe()
        'when the watermark is 10 seconds past the earliest new row'
    """

    delay: Duration = attrs.field(default=Duration(0), converter=read_not_negative)
    aligned_to: Duration | None = attrs.field(default=None, converter=read_positive_or_none, kw_only=True)
    offset: Duration = attrs.field(default=Duration(0), converter=read_duration, kw_only=True)
    needs_row_times = True

    def __attrs_post_init__(self) -> None:
        check_span("AfterEventTime(delay)", self.delay, "each pane is delayed by this much")
        if self.offset and self.aligned_to is None:
            raise OptionError(
                f"AfterEventTime(offset={self.offset!r}): shifts aligned times; add aligned_to='1 minute'"
            )

    def describe(self) -> str:
        return self._describe("its earliest row", "the next")

    def describe_repeated(self) -> str:
        return self._describe("the earliest new row", "each")

    def _describe(self, row: str, which: str) -> str:
        if self.aligned_to is None:
            return f"when the watermark is {self.delay} past {row}"
        full = f"at {which} full {self.aligned_to}" + (f" and {self.offset}" if self.offset else "")
        if not self.delay:
            return f"{full} of event time with new rows"
        return f"{full} of event time that is {self.delay} past {row}"

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {"target_us": ("int64", NEVER_US)}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        waits = at[~s.finished[at]]  # AfterEach also shows rows to finished parts
        target_us = delayed_us(now.earliest_us(waits), self.delay, self.aligned_to, self.offset)
        s["target_us"][waits] = np.minimum(s["target_us"][waits], target_us)

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return s["target_us"][at] <= now.progress_us(at)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        self.clear(s, at)
        s.finished[at] = True

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        s["target_us"][m.into] = m.least(s["target_us"])

    def due_columns(self, s: State, at: WindowIndices) -> Any:
        return s["target_us"][at]

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return in_words(s["target_us"][at], self._waits_for)

    def _waits_for(self, target_us: int) -> str:
        if target_us == NEVER_US:
            return f"a row, and then {self.describe()}"
        return f"the watermark to reach {instant_in_words(target_us)}"
