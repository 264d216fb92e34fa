"""A dashboard of the clicks per user and minute, early and then complete: a table with user and minute as its key, in which each
pane overwrites the one before. Accumulating panes have all clicks so far.
"""

from datetime import UTC, datetime, timedelta

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import AfterCount, AfterWatermark

DISORDER = 30  # seconds by which the source's rows may be late

pipeline = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("30 seconds"))
    .key_by("user")
    .window(bm.FixedWindows("1 minute"))
    .trigger(AfterWatermark(early=AfterCount(2)))
    .accumulating()
    .accumulate(clicks=Count())
)
rows = "user string, ts timestamp"


def expected(rows):
    clicks = {}
    for row in rows:
        if row["ts"] is None:
            continue
        at = row["user"], instant(row["ts"]).timestamp() // 60 * 60
        clicks[at] = clicks.get(at, 0) + 1
    return [
        {"user": user, "start": instant(at), "end": instant(at) + timedelta(minutes=1), "clicks": n}
        for (user, at), n in clicks.items()
    ]


def instant(ts):
    return ts if isinstance(ts, datetime) else datetime.fromtimestamp(ts, UTC)
