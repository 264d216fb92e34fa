"""How many clicks each hour has over all users, from the clicks of each user, which are early and then complete. The first stage
retracts a count that it replaces.
"""

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import AfterCount, AfterWatermark

DISORDER = 60  # seconds by which the source's rows may be late

users = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("user")
    .window(bm.FixedWindows("1 hour"))
    .trigger(AfterWatermark(early=AfterCount(1)))
    .accumulating_and_retracting()
    .accumulate(clicks=Count())
)
pipeline = users.then(bm.Pipeline().window(bm.FixedWindows("1 hour")).accumulate(clicks=Sum("clicks")))
rows = "user string, ts timestamp"
expected = None
