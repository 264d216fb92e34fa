"""How many payments each user has made so far. The payment service tries again, with the same ID and a new time, for up to a day.

Wrong: duplicates are known for one minute, so a payment that is tried again later counts twice. Rows later than a minute are dropped
too, since their ID might have expired.
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
    .deduplicate("payment", within="1 minute")
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
