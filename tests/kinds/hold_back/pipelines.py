"""Pipelines with a stage that holds rows back, alone, before and after windows, and a script."""

from __future__ import annotations

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.source import Source
from beamish.testing import TestStream
from tests.kinds.hold_back.stage import held_back

SOURCE = Source("ts", bm.BoundedOutOfOrderness(0), ("team",))
COUNTS = bm.Pipeline().key_by("team").window(bm.FixedWindows(2)).accumulate(n=Count(), sum=Sum("score"))
FIRST = COUNTS.event_time("ts", bm.BoundedOutOfOrderness(0))
SCRIPT = (
    TestStream()
    .add([{"ts": 3, "team": "red", "score": 1}, {"ts": 1, "team": "red", "score": 2}])
    .add([{"ts": 2, "team": "blue", "score": None}])
    .advance_watermark_to(6)
    .advance_watermark_to(7)
    .add([{"ts": 9, "team": "red", "score": 4}, {"ts": 2, "team": "red", "score": 5}])
    .advance_watermark_to(30)
)
PIPELINES = {
    "rows held back": held_back(5, SOURCE),
    "rows held back, then counted": held_back(5, SOURCE).then(COUNTS),
    "counts held back": held_back(5, FIRST),
    "counts held back, then counted": held_back(5, FIRST).then(
        bm.Pipeline().window(bm.FixedWindows(10)).accumulate(counts=Count(), n=Sum("n"))
    ),
}
