"""Visits of users, with a count every minute. Phones send their clicks up to two hours late, and the delay covers it."""

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import AfterProcessingTime, AfterWatermark

DISORDER = 2 * 60 * 60  # seconds by which the source's rows may be late

pipeline = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("2 hours"))
    .key_by("user")
    .window(bm.Sessions("30 minutes"))
    .trigger(AfterWatermark(early=AfterProcessingTime("1 minute")))
    .accumulating_and_retracting()
    .accumulate(clicks=Count())
)
rows = "user string, ts timestamp"
expected = None
