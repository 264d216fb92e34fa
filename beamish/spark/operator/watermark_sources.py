"""Sources of a shard's input watermarks: the query's watermark, or reports of tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from beamish.contract.store import REPORTS, Store
from beamish.spark.runtime.millis import watermark_us


class WatermarkSource(Protocol):
    """Returns the watermark of each input for a step."""

    def sources_us(self, store: Store, query_ms: int, reports: Mapping[int, int]) -> Sequence[int | None]:
        """The watermark of each input, in microseconds.

        Args:
            store: the shard's.
            query_ms: Spark's watermark, in milliseconds.
            reports: those of this batch: by input number, in microseconds.
        """
        ...


@attrs.frozen
class FromQuery:
    """Spark's watermark, the least of all ``withWatermark`` of the query.

    Attributes:
        followed: for each input whether it follows it, and not the clock.
    """

    followed: tuple[bool, ...]

    def sources_us(self, store: Store, query_ms: int, reports: Mapping[int, int]) -> Sequence[int | None]:
        return [watermark_us(query_ms) if followed else None for followed in self.followed]


@attrs.frozen
class FromReports:
    """Each input's own watermark, if one number for the query is not enough.

    Reports of a source's rows apply from the next batch on, like Spark's own watermark. A stage's report of its watermark applies
    at once: its panes of this batch precede it. Every shard receives every report and stores those for the next batch in its
    state, so that all have the same watermark, also after a restart.

    Attributes:
        stages: for each input whether it is a stage.
    """

    stages: tuple[bool, ...]

    def sources_us(self, store: Store, query_ms: int, reports: Mapping[int, int]) -> Sequence[int | None]:
        stored = store.get(REPORTS)
        before = json.loads(stored or b"{}")
        kept = {str(number): us for number, us in reports.items() if not self.stages[number]}
        if kept != before:
            store.put(REPORTS, json.dumps(kept).encode())
        return [
            reports.get(number) if is_stage else watermark_us(before.get(str(number), 0) // 1000)
            for number, is_stage in enumerate(self.stages)
        ]
