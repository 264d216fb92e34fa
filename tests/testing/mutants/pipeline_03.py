"""Visits of users, and how many pages each had. A visit is over after 30 minutes without a page."""

from datetime import UTC, datetime, timedelta

import beamish as bm
from beamish.accumulations import Count

DISORDER = 5 * 60  # seconds by which the source's rows may be late
GAP = timedelta(minutes=30)

pipeline = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("5 minutes"))
    .key_by("user")
    .window(bm.Sessions("30 minutes"))
    .accumulate(pages=Count())
)
rows = "user string, ts timestamp, page string"


def expected(rows):
    times = {}
    for row in rows:
        if row["ts"] is not None:
            times.setdefault(row["user"], []).append(instant(row["ts"]))
    visits = []
    for user, at in times.items():
        end = None
        for ts in sorted(at):
            if end is None or ts >= end:
                visits.append({"user": user, "start": ts, "pages": 0})
            end = ts + GAP
            visits[-1]["end"] = end
            visits[-1]["pages"] += 1
    return visits


def instant(ts):
    return ts if isinstance(ts, datetime) else datetime.fromtimestamp(ts, UTC)
