"""Expiry of inactive keys in the global window (docs/rules/windows.md#forget-after).

A window expires when the watermark is a span past its latest row, so each row extends it.

columns:
    latest_us           the greatest event time of its rows, or NO_VALUE
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from beamish.contract.relation import Relation
from beamish.errors import PipelineError
from beamish.instants import END_OF_TIME_US, NO_TIME_US
from beamish.kernels.buffers import NO_VALUE, Ints
from beamish.kernels.groups import Groups
from beamish.kinds.window.plan.options import WindowOptions
from beamish.kinds.window.plan.part import WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.window_table import WindowTable
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.entries import Entries
from beamish.kinds.window.step.step import Step
from beamish.triggers.trigger import WindowIndices

LATEST = "latest_us"


def check_forgetting(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check that windows are global and rows have event time (PipelineError: not so)."""
    if options.forget_after is None:
        return
    call = f"forget_after({str(options.forget_after)!r})"
    if options.counts_rows:
        raise PipelineError(
            f"{call} in {options.window!r}: count windows end by rows; to expire idle keys use bm.CountWindows(..., idle='1 day')"
        )
    if not options.never_ends:
        raise PipelineError(
            f"{call} in {options.window!r}: these windows end by themselves, and the state of their keys with them; leave it out"
        )
    if not all(relation.has_timestamps for relation in takes):
        raise PipelineError(
            f"{call} of panes without timestamp: the time of a key's last row is unknown; give the stage before a "
            "timestamp_combiner, such as .timestamp_combiner(bm.TimestampCombiner.LATEST), or windows that end"
        )


class ForgettingPart(WindowPart):
    """Expires keys ``span_us`` microseconds after their latest row."""

    columns: Mapping[str, tuple[str, Any]] = {LATEST: ("int64", NO_VALUE)}
    reads_times = True

    def __init__(self, span_us: int) -> None:
        self._span_us, self.layout_facts = span_us, {"forget_after_us": span_us}

    @classmethod
    def of(cls, plan: WindowPlan) -> ForgettingPart | None:
        span = plan.options.forget_after
        return cls(span.us) if span is not None and plan.window.is_all_of_time else None

    def missing(self, watermark_us: int) -> Mapping[str, Any]:
        return {LATEST: watermark_us}  # as if the last row of such a window came now

    def on_rows(self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices) -> None:
        time = bundle.last_us[entries.row]
        latest = step.table[LATEST]
        latest[at] = np.maximum(latest[at], groups.greatest(np.where(time == NO_TIME_US, NO_VALUE, time)))

    def over_us(self, table: WindowTable, at: WindowIndices) -> Ints:
        latest = table[LATEST][at]
        over = np.minimum(latest, END_OF_TIME_US - self._span_us) + self._span_us
        return np.where(latest == NO_VALUE, END_OF_TIME_US, over)
