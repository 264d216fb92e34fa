"""Running totals of a query, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from beamish.contract.counts import DROPPED, PANES, SKIPPED
from beamish.pane import DropReason, PaneTiming


@attrs.frozen
class BatchCounts:
    """Metrics of a micro-batch.

    Attributes:
        batch: its number.
        rows: rows read from the sources.
        seconds: its duration.
        began: its start.
        watermark: its watermark; None: there was none yet.
        state_bytes: memory used by the state store.
        counts: the metrics of ``bm.observe``, by name; empty: not observed, or no shard was called. None: unknown.
        shards: metrics of each called shard, by number: ``live_windows`` and ``next_due_ms``, if present.
        skipped: records of the sources that are not changes of a row, such as Debezium's tombstones.
    """

    batch: int
    rows: int
    seconds: float
    began: datetime
    watermark: datetime | None
    state_bytes: int
    counts: Mapping[str, int | None]
    shards: Mapping[int, Mapping[str, int]] = {}
    skipped: int = 0

    @classmethod
    def read(cls, progress: Any, name: str) -> BatchCounts:
        """Read Spark's ``StreamingQueryProgress``; ``name`` as given to ``bm.observe``."""
        counts = dict(_counts(progress.observedMetrics.get(name)))
        by_shard = counts.pop("by_shard", None)
        stated = progress.eventTime.get("watermark")
        watermark_ms = counts.get("watermark_ms")
        watermark = None if watermark_ms is None else _at_ms(watermark_ms)
        if watermark is None and stated and not stated.startswith("1970-01-01T00:00:00"):
            watermark = _read_time(stated)
        return cls(
            progress.batchId,
            progress.numInputRows,
            progress.durationMs.get("triggerExecution", 0) / 1000,
            _read_time(progress.timestamp),
            watermark,
            sum(operator.memoryUsedBytes for operator in progress.stateOperators),
            counts,
            {one["shard"]: one for one in json.loads(by_shard or "[]")},
            sum(
                _counts(observed).get(SKIPPED) or 0
                for name, observed in progress.observedMetrics.items()
                if name.startswith(SKIPPED)
            ),
        )


@attrs.define
class Totals:
    """Totals of a query: counts are summed over batches, others are the last reported values.

    Attributes:
        batches: number of batches.
        rows: rows read from the sources.
        seconds: total duration of the batches. panes: panes by their timing.
        retractions: retractions.
        dropped: dropped rows by the reason.
        skipped: records of the sources that are not changes of a row, such as Debezium's tombstones; counted without ``bm.observe`` too.
        taken: rows put into windows, once per window.
        watermark: the current watermark; None at first.
        began: start of the last batch.
        state_bytes: memory used by the state store.
        max_late_by_ms: maximum lateness of dropped rows; None: there was none.
        is_observed: whether a batch was observed so far.
    """

    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    panes: dict[PaneTiming, int] = attrs.Factory(lambda: dict.fromkeys(PANES, 0))
    retractions: int = 0
    dropped: dict[DropReason, int] = attrs.Factory(lambda: dict.fromkeys(DROPPED, 0))
    skipped: int = 0
    taken: int = 0
    watermark: datetime | None = None
    began: datetime | None = None
    state_bytes: int = 0
    max_late_by_ms: int | None = None
    is_observed: bool = False
    _shards: dict[int, Mapping[str, int]] = attrs.Factory(dict)

    def add(self, seen: BatchCounts) -> None:
        """Add a batch."""
        counts = seen.counts
        self.batches += 1
        self.is_observed |= bool(counts)
        self.rows += seen.rows
        self.skipped += seen.skipped
        self.seconds += seen.seconds
        self.began, self.state_bytes = seen.began, seen.state_bytes
        self.watermark = seen.watermark or self.watermark
        for timing, name in PANES.items():
            self.panes[timing] += counts.get(name) or 0
        for reason, name in DROPPED.items():
            self.dropped[reason] += counts.get(name) or 0
        self.retractions += counts.get("retractions") or 0
        self.taken += counts.get("rows") or 0
        late_by_ms = counts.get("max_late_by_ms")
        if late_by_ms is not None:
            self.max_late_by_ms = max(late_by_ms, self.max_late_by_ms or late_by_ms)
        if seen.batch == 0:  # another checkpoint with the same name
            self._shards.clear()
        self._shards.update(seen.shards)  # a shard that was not called is unchanged

    @property
    def live_windows(self) -> int | None:
        """Stored windows in the shards called so far; None: none called, or not counted."""
        kept = [shard["live_windows"] for shard in self._shards.values() if "live_windows" in shard]
        return sum(kept) if kept else None

    @property
    def next_due(self) -> datetime | None:
        """The next due watermark in these shards; None: nothing is due, or unknown."""
        due = [shard["next_due_ms"] for shard in self._shards.values() if "next_due_ms" in shard]
        return _at_ms(min(due)) if due else None

    @property
    def lag_seconds(self) -> float | None:
        """How far the watermark was behind the clock when the last batch began."""
        if self.watermark is None or self.began is None:
            return None
        return (self.began - self.watermark).total_seconds()

    @property
    def all_dropped(self) -> int:
        """Dropped rows for all reasons."""
        return sum(self.dropped.values())

    def words(self) -> Iterator[tuple[str, str]]:
        """Lines of subject and text."""
        speed = f" ({self.rows / self.seconds:,.0f} per second)" if self.seconds else ""
        yield "rows", f"{self.rows:,}{speed}"
        if self.skipped:
            yield "skipped", f"{self.skipped:,} without a change"
        lag = self.lag_seconds
        # Meaningless when replaying last year's rows.
        behind = f", {_span(lag)} behind the clock" if lag is not None and 0 <= lag < 30 * 86_400 else ""
        yield "watermark", "none yet" if self.watermark is None else f"{self.watermark:%Y-%m-%d %H:%M:%S}{behind}"
        if not self.is_observed:
            yield "panes", "not observed: bm.observe(panes) counts them"
            yield "state", f"{self.state_bytes / 2**20:,.1f} MiB"
            return
        by_timing = ", ".join(f"{count:,} {timing.lower().replace('_', ' ')}" for timing, count in self.panes.items())
        yield "panes", by_timing
        yield "retractions", f"{self.retractions:,}"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items() if count)
        yield "dropped", reasons or "0"
        if self.live_windows is not None:
            yield "live windows", f"{self.live_windows:,}"
        yield "state", f"{self.state_bytes / 2**20:,.1f} MiB"


def _counts(observed: Any) -> Mapping[str, Any]:
    """Spark's observation as a dict: a row; on Spark Connect (seen in 4.3) values and a schema."""
    if observed is None:
        return {}
    row: Mapping[str, Any] = observed.asDict()
    if set(row) == {"values", "schema"}:
        return dict(zip((field["name"] for field in row["schema"]["fields"]), row["values"], strict=True))
    return row


def _span(seconds: float) -> str:
    """A rough duration."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _at_ms(ms: int) -> datetime | None:
    """The instant; None: beyond the range of datetimes, such as the end of time."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _read_time(text: str) -> datetime:
    return datetime.fromisoformat(text)
