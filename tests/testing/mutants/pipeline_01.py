"""Spending per user and ten minutes. Phones send their rows when they are online again, up to 30 minutes late, and the allowed
lateness covers it.
"""

from datetime import UTC, datetime, timedelta

import beamish as bm
from beamish.accumulations import Sum

DISORDER = 30 * 60  # seconds by which the source's rows may be late

pipeline = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
    .key_by("user")
    .window(bm.FixedWindows("10 minutes"))
    .allowed_lateness("30 minutes")
    .accumulating()
    .accumulate(cents=Sum("cents"))
)
rows = "user string, ts timestamp, cents int"


def expected(rows):
    totals = {}
    for row in rows:
        if row["ts"] is None:
            continue
        at = instant(row["ts"]).timestamp() // 600 * 600
        totals.setdefault((row["user"], at), []).append(row["cents"])
    return [
        {
            "user": user,
            "start": instant(at),
            "end": instant(at) + timedelta(minutes=10),
            "cents": total([c for c in cents if c is not None]),
        }
        for (user, at), cents in totals.items()
    ]


def total(numbers):
    return sum(numbers) if numbers else None


def instant(ts):
    return ts if isinstance(ts, datetime) else datetime.fromtimestamp(ts, UTC)
