"""Visits, pipelines over them, and strategies of their rows."""

from __future__ import annotations

import beamish as bm
from beamish.accumulations import Collect, Count, InnerJoin, Sum
from beamish.testing import strategies as st
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Always, Repeatedly

VISITS = "user string, ts double, amount int"
delayed = bm.BoundedOutOfOrderness("1 minute")
source = bm.Pipeline().event_time("ts", delayed).key_by("user")
trigger = AfterWatermark(early=AfterCount(2), late=Always())
sessions = (
    source.window(bm.Sessions("10 minutes"))
    .trigger(trigger)
    .allowed_lateness("30 minutes")
    .accumulating_and_retracting()
    .with_dropped()
    .accumulate(n=Count(), total=Sum("amount"))
)
hourly = (
    source.window(bm.FixedWindows("1 hour"))
    .trigger(trigger)
    .allowed_lateness("2 hours")
    .accumulating_and_retracting()
    .accumulate(n=Count())
)
rates = bm.Pipeline().event_time("ts", delayed).key_by("user").versions("1 day", values=["amount"])
upserts = bm.Pipeline().event_time("ts", delayed).key_by("user").upserts()
clicks = bm.Pipeline().event_time("at", bm.ProcessingTimeLag("5 minutes")).key_by("visitor")
PIPELINES = {
    "sessions": sessions,
    "sliding windows": source.window(bm.SlidingWindows("1 hour", "20 minutes")).accumulate(n=Count()),
    "calendar windows": source.window(bm.CalendarWindows(months=1, timezone="Europe/Paris")).accumulate(n=Count()),
    "all of time": source.window(bm.GlobalWindow()).trigger(Always()).discarding().accumulate(n=Count()),
    "windows of rows": bm.Pipeline().key_by("user").window(bm.CountWindows(3)).accumulate(n=Count()),
    "a chain": hourly.then(bm.Pipeline().window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(n=Sum("n"))),
    "a clock": source.window(bm.FixedWindows("1 hour")).trigger(Repeatedly(AfterProcessingTime("1 minute"))).discarding().accumulate(n=Count()),
    "a merge": bm.merge(visits=source, clicks=clicks).window(bm.Sessions("1 hour")).accumulate(pairs=InnerJoin("visits", "clicks")),
    "duplicates": source.deduplicate("amount", within="1 hour"),
    "suppressed": hourly.suppress(bm.UntilWindowCloses()),
    "a table": rates,
    "upserts": upserts,
    "a mutable table, grouped": upserts.then(bm.Pipeline().key_by("amount").window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting().accumulate(n=Count())),
    "an as-of join": bm.as_of_join(visits=bm.Pipeline().event_time("ts", delayed), rates=rates, on={"user": "user"}),
    "a changelog": source.window(bm.FixedWindows("1 hour")).allowed_lateness("1 day").accumulating_and_retracting(),
}  # fmt: skip
PIPELINES["a changelog"] = bm.Pipeline(
    PIPELINES["a changelog"].flow
).from_changelog("debezium").trigger(trigger).accumulate(n=Count(), all=Collect("amount"))  # fmt: skip
ROWS = {"clicks": st.rows("visitor string, at timestamp")}


def rows_for(pipeline: bm.Pipeline) -> dict | str:
    names = [one.name for one in pipeline.flow.sources]
    return VISITS if names == [None] else {str(name): ROWS.get(str(name), st.rows(VISITS)) for name in names}
