"""Which click followed which ad within ten minutes, and which ad had none: an outer interval join.

Each impression is joined with the clicks of the ten minutes after it. The result is correct at every moment: an impression is
first emitted alone, and retracted when its click arrives, however late. The same pipeline runs on Spark:
``clicked.apply(impressions=..., clicks=...)``.

    python examples/ads_without_clicks.py
"""

import beamish as bm
from beamish.accumulations import LeftOuterJoin
from beamish.testing import TestStream
from beamish.triggers import Always


def minutes(number: float) -> float:
    """Seconds."""
    return 60 * number


impressions = bm.Pipeline().event_time("shown", bm.BoundedOutOfOrderness("1 minute")).key_by("user")
clicks = bm.Pipeline().event_time("clicked", bm.BoundedOutOfOrderness("1 minute")).key_by("user")
clicked = (
    bm.merge(impressions=impressions, clicks=clicks)
    .window(bm.Within(of="clicks", after="10 minutes"))
    .trigger(Always())
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .accumulate(pair=LeftOuterJoin("impressions", "clicks"))
)

ann = [{"user": "ann", "shown": minutes(0), "ad": "tea"}, {"user": "ann", "shown": minutes(8), "ad": "jam"}]
script = (
    TestStream()
    .add(ann, input="impressions")
    .add([{"user": "ann", "clicked": minutes(9)}], input="clicks")
    .add([{"user": "ann", "clicked": minutes(18)}, {"user": "ann", "clicked": minutes(18.5)}], input="clicks")
    .advance_watermark_to(minutes(40))
    .add([{"user": "bob", "shown": minutes(12), "ad": "tea"}], input="impressions")
)

for number, (_, rows) in enumerate(script.trace(clicked), 1):
    for row in rows:
        impression, click = row.values["pair"]["impressions"], row.values["pair"]["clicks"]
        then = f"clicked at {click['clicked'] / 60:g} min" if click else "no click"
        print(
            f"event {number}: {row.kind:<10} {row.key['user']} saw {impression['ad']} at {impression['shown'] / 60:g} min: {then}"
        )

print("in the end:")
for row in bm.live([pane for _, rows in script.trace(clicked) for pane in rows]):
    impression, click = row.values["pair"]["impressions"], row.values["pair"]["clicks"]
    print(f"  {row.key['user']} {impression['ad']}: {'clicked' if click else 'no click'}")
