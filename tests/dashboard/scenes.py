"""A pipeline and a script whose page is looked at."""

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream

KEYED = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(10)).key_by("team")
SCORES = (
    KEYED.window(bm.FixedWindows(60)).allowed_lateness(300).accumulating().accumulate(n=Count(), total=Sum("score"))
)


def row(team, ts, score=1):
    return {"team": team, "ts": ts, "score": score}


SCRIPT = TestStream().add([row("red", 5), row("blue", 70, 41), row("red", 130)]).advance_watermark_to(65)
PART = {"X-Beamish-Part": "1"}
"""The page's script sends this to get a part of the page."""
