"""Orders and clicks, which merge, and a script of both."""

import beamish as bm
from beamish.testing import TestStream

ORDERS = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)).key_by("user")
CLICKS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("uid")
BOTH = bm.merge(orders=ORDERS, clicks=CLICKS).window(bm.FixedWindows(10))
ORDER = {"at": 1, "user": "ann", "amount": 5}
CLICK = {"ts": 2, "uid": "ann", "page": "a"}
SCRIPT = TestStream().add([ORDER], input="orders").add([CLICK], input="clicks").advance_watermark_to_infinity()
LAGGING = bm.merge(orders=ORDERS, clicks=CLICKS.event_time("ts", bm.ProcessingTimeLag(4))).window(bm.FixedWindows(10))
