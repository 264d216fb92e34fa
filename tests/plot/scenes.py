"""Pipelines and scripts whose pictures tests look at."""

from __future__ import annotations

import beamish as bm
from beamish.accumulations import Count, InnerJoin, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
SCORES = (
    SOURCE.key_by("team")
    .window(bm.FixedWindows(120))
    .trigger(AfterWatermark(early=AfterCount(2), late=AfterCount(1)))
    .allowed_lateness(600)
    .accumulating_and_retracting()
    .accumulate(total=Sum("score"), plays=Count())
)


def play(ts, team, score):
    return {"ts": ts, "team": team, "score": score}


STEPS = (
    TestStream()
    .add([play(10, "red", 5), play(70, "red", 3)])
    .add([play(50, "blue", 2)])
    .advance_watermark_to(120)
    .add([play(90, "red", 1)])
    .advance_watermark_to(900)
    .add([play(100, "red", 7)])
)
"""Without a clock."""

CLOCK = (
    TestStream()
    .step([play(10, "red", 5), play(70, "red", 3)], clock=75)
    .step([play(50, "blue", 2)], clock=90)
    .step(watermark=120, clock=130)
    .step([play(90, "red", 1)], clock=140)
    .step(watermark=900, clock=180)
    .step([play(100, "red", 7)], clock=190)
)
"""The same with one."""

FIRST = (
    SOURCE.key_by("user")
    .window(bm.FixedWindows(60))
    .trigger(AfterWatermark(late=AfterCount(1)))
    .allowed_lateness(60)
    .accumulating_and_retracting()
    .accumulate(n=Sum("v"))
)
CHAIN = FIRST.then(
    bm.Pipeline()
    .window(bm.FixedWindows(120))
    .trigger(AfterWatermark(early=Always(), late=AfterCount(1)))
    .allowed_lateness(300)
    .accumulating_and_retracting()
    .accumulate(total=Sum("n"))
)
CHAINED = (
    TestStream()
    .step([{"ts": 5, "user": "a", "v": 3}], clock=20)
    .step([{"ts": 30, "user": "a", "v": 2}], clock=40)
    .step(watermark=60, clock=80)
    .step([{"ts": 50, "user": "a", "v": 9}], clock=95)
    .step(watermark=130, clock=140)
    .step([{"ts": 20, "user": "a", "v": 1}], clock=150)
    .step(watermark=500, clock=170)
)

JOIN = (
    bm.merge(
        ads=bm.Pipeline().event_time("seen", bm.BoundedOutOfOrderness(0)).key_by("user"),
        clicks=bm.Pipeline().event_time("clicked", bm.BoundedOutOfOrderness(0)).key_by("user"),
    )
    .window(bm.FixedWindows(60))
    .accumulate(pair=InnerJoin("ads", "clicks"))
)
JOINED = (
    TestStream()
    .step([{"seen": 5, "user": 1, "ad": "tea"}], input="ads", clock=10)
    .step([{"clicked": 15, "user": 1, "at": "top"}], input="clicks", clock=22)
    .step(watermark=60, input="ads", clock=70)
    .step(watermark=40, input="clicks", clock=75)
    .step(watermark=80, input="clicks", clock=100)
)

SESSIONS = (
    SOURCE.window(bm.Sessions(30))
    .trigger(AfterWatermark(early=Always()))
    .accumulating_and_retracting()
    .accumulate(n=Sum("v"))
)
MERGING = (
    TestStream()
    .step([{"ts": 0, "v": 1}], clock=10)
    .step([{"ts": 40, "v": 2}], clock=45)
    .step([{"ts": 20, "v": 4}], clock=50)
    .step(watermark=200, clock=210)
)
