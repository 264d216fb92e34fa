"""Visits of users, with a count every minute. Phones send their clicks up to two hours late.

Wrong: the watermark's delay is five minutes, without an allowed lateness, so later clicks are dropped.
"""

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import AfterProcessingTime, AfterWatermark

DISORDER = 2 * 60 * 60  # seconds by which the source's rows may be late

pipeline = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("5 minutes"))
    .key_by("user")
    .window(bm.Sessions("30 minutes"))
    .trigger(AfterWatermark(early=AfterProcessingTime("1 minute")))
    .accumulating_and_retracting()
    .accumulate(clicks=Count())
)
rows = "user string, ts timestamp"
expected = None
