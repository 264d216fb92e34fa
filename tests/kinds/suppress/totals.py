"""Totals and changes to suppress, and how."""

from __future__ import annotations

from datetime import UTC, datetime

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.triggers import Always

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
TOTALS = SOURCE.window(bm.FixedWindows(60)).trigger(Always()).allowed_lateness(30).accumulating()
TOTALS = TOTALS.accumulate(total=Sum("v"))
CHANGES = SOURCE.changes(deleted="gone", sequence_by="seq", window="window")
CLOSES = bm.UntilWindowCloses()
EVENT = bm.UntilTimeLimit(10, clock="event")
CLOCK = bm.UntilTimeLimit(10, clock="processing")


def at(second):
    return datetime.fromtimestamp(second, UTC)


def row(k, v, ts, **more):
    return {"k": k, "v": v, "ts": ts, **more}


NEXT = bm.Pipeline().accumulating().accumulate(n=Count())
