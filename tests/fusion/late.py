"""A chain whose first stage emits late panes, and a script in which most of its shards have no rows when the watermark moves."""

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark

LATE = AfterWatermark(late=AfterCount(1))
FIRST = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .trigger(LATE)
    .allowed_lateness(1000)
    .discarding()
    .accumulate(n=Count())
)
CHAIN = FIRST.then(bm.Pipeline().key_by("team").trigger(LATE).allowed_lateness(5).discarding().accumulate(n=Sum("n")))
IDLE, NEW = "abcdefgh", "ijklmnop"
SCRIPT = (
    TestStream()
    .add([{"ts": 1, "team": team} for team in IDLE])
    .advance_watermark_to(20)
    .add([{"ts": 50, "team": "z"}])
    .advance_watermark_to(60)
    .step([{"ts": 30, "team": team} for team in IDLE + NEW], watermark=61)
    .advance_watermark_to_infinity()
)
