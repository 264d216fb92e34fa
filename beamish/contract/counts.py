"""Metrics of a shard's step, for query monitoring."""

from __future__ import annotations

import attrs
import pyarrow as pa

from beamish.pane import DropReason, PaneKind, PaneTiming

PANES = {timing: f"panes_{timing.lower()}" for timing in (PaneTiming.EARLY, PaneTiming.ON_TIME, PaneTiming.LATE)}
DROPPED = {
    reason: {
        DropReason.EXPIRED: "dropped_due_to_lateness",
        DropReason.WINDOW_FINISHED: "dropped_due_to_closed_window",
        DropReason.NULL_EVENT_TIME: "dropped_no_event_time",
    }.get(reason, f"dropped_{reason}")
    for reason in DropReason
}
"""The name of each reason's count."""
COUNTED = ("rows", *PANES.values(), "retractions", *DROPPED.values(), "live_windows", "shards")
"""Metrics summed over shards."""
SKIPPED = "_beamish_skipped"
"""Prefix of the observations of sources whose records may be unusable as changes; each has a count of this name."""
BY_SHARD = ("shard", "live_windows", "next_due_ms")
"""Metrics reported per shard."""
GREATEST, LEAST = ("max_late_by_ms", "watermark_ms", "clock_ms"), ("next_due_ms",)
"""Metrics combined over shards by max, or by min."""


@attrs.frozen
class Counts:
    """Metrics of a shard's last step; None: not counted by this kind of stage.

    Attributes:
        taken: rows put into windows, once per window.
        late_by_us: how far behind the watermark the latest-arriving row was, among those dropped from windows; microseconds.
        windows: number of stored windows after the step.
    """

    taken: int | None = None
    late_by_us: int | None = None
    windows: int | None = None


def counts_of_output(table: pa.Table) -> dict[str, int]:
    """The number of panes by timing, and of retractions, in rows of output."""
    counts = dict.fromkeys([*PANES.values(), "retractions"], 0)
    if not table.num_rows:
        return counts
    pane = table["pane"].combine_chunks()
    kinds = pa.table({name: pane.field(name) for name in ("kind", "timing")}).group_by(["kind", "timing"])
    for row in kinds.aggregate([([], "count_all")]).to_pylist():
        if row["kind"] == PaneKind.PANE and row["timing"] != PaneTiming.UNKNOWN:
            counts[PANES[PaneTiming(row["timing"])]] += row["count_all"]
        elif row["kind"] == PaneKind.RETRACTION:
            counts["retractions"] += row["count_all"]
    return counts
