"""How many payments each user has made so far. The payment service tries again, with the same ID and a new time, for up to a day;
IDs are kept for ever.
"""

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import Always

DISORDER = 5 * 60  # seconds by which the source's rows may be late

pipeline = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("5 minutes"))
    .key_by("user")
    .window(bm.GlobalWindow())
    .deduplicate("payment", within="forever")
    .trigger(Always())
    .accumulating()
    .accumulate(payments=Count())
)
rows = "user string, ts timestamp, payment bigint"


def expected(rows):
    payments = {}
    for row in rows:
        if row["ts"] is not None:
            payments.setdefault(row["user"], set()).add(row["payment"])
    return [{"user": user, "payments": len(ids)} for user, ids in payments.items()]
