"""Where the watermarks of a shard's inputs come from: the query's own, or reports of tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from beamish.contract.store import REPORTS, Store
from beamish.spark.runtime.millis import watermark_us


class WatermarkSource(Protocol):
    """Gives the watermark of each input for a step."""

    def sources_us(self, store: Store, query_ms: int, reports: Mapping[int, int]) -> Sequence[int | None]:
        """The watermark of each input, in microseconds.

        Args:
            store: the shard's.
            query_ms: Spark's watermark, in milliseconds.
            reports: what came in this batch: by number of the input, in microseconds.
        """
        ...


@attrs.frozen
class FromQuery:
    """Spark's watermark, which is the least of all ``withWatermark`` of the query.

    Attributes:
        followed: for each input whether it follows that; one that follows the clock does not.
    """

    followed: tuple[bool, ...]

    def sources_us(self, store: Store, query_ms: int, reports: Mapping[int, int]) -> Sequence[int | None]:
        return [watermark_us(query_ms) if followed else None for followed in self.followed]


@attrs.frozen
class FromReports:
    """Each input's own watermark, where one number for the query is not enough.

    What tasks report of a source's rows counts from the next batch on, as Spark's own watermark does, so that the rows
    of a batch are judged by the batches before it. A stage's report of its watermark counts at once: its panes of this
    batch come in before it. Every shard gets every report and keeps those that count from the next batch on in its state,
    so that all come to the same watermark, also after a restart.

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
