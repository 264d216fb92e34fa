"""Spending of all users per hour, from their totals per minute, which are early and then complete. The first stage retracts a total
that it replaces, so the second one counts each row once.
"""

from datetime import UTC, datetime, timedelta

import beamish as bm
from beamish.accumulations import Sum
from beamish.triggers import AfterCount, AfterWatermark

DISORDER = 60  # seconds by which the source's rows may be late

minutes = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("user")
    .window(bm.FixedWindows("1 minute"))
    .trigger(AfterWatermark(early=AfterCount(1)))
    .accumulating_and_retracting()
    .accumulate(cents=Sum("cents"))
)
hours = bm.Pipeline().window(bm.FixedWindows("1 hour")).accumulate(total=Sum("cents"))
pipeline = minutes.then(hours)
rows = "user string, ts timestamp, cents int"


def expected(rows):
    spent = {}
    for row in rows:
        if row["ts"] is not None:
            spent.setdefault(instant(row["ts"]).timestamp() // 3600 * 3600, []).append(row["cents"])
    return [
        {
            "start": instant(at),
            "end": instant(at) + timedelta(hours=1),
            "total": total([c for c in cents if c is not None]),
        }
        for at, cents in spent.items()
    ]


def total(numbers):
    return sum(numbers) if numbers else None


def instant(ts):
    return ts if isinstance(ts, datetime) else datetime.fromtimestamp(ts, UTC)
