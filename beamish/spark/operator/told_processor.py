"""The operator of a stage after a merge that follows its inputs' watermarks: the merge tells it its own.

The merge's shards all come to the same watermark, and each tells it in every batch, as a mark beside its panes. The
stage takes the panes first, then this watermark (RULES.md 30). A later stage is called on in every batch, so it has no
timers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from beamish.spark.operator.processor import ShardProcessor
from beamish.spark.rows.watermark_reports import NO_INPUT


class ToldProcessor(ShardProcessor):
    """One micro-batch of one partition."""

    def _read(self, rows: Iterable[Any]) -> tuple[list[bytes], int]:
        frames = list(rows)
        marks = [mark for frame in frames for mark in frame.loc[frame["input"] != NO_INPUT, "mark_us"]]
        self._told_us = max(map(int, marks), default=None)
        return super()._read(frames)

    def _watermark(self, timer_values: Any, clock_us: int | None) -> int | None:
        return self._told_us

    def _due_ms(self, due_us: int | None) -> int | None:
        return None
