"""Two stages: the points of each player, then how many players have how many points.

When a player scores again, the pane of the first stage that said "ann has 1" is retracted. The second stage takes
the retraction as the removal of that row, so ann leaves the group of those with 1 point and joins another: what is
live is right after every bundle. A group that no one is left in is retracted, and gives no pane.

    python examples/count_per_sum.py
"""

import beamish as bm
from beamish.accumulations import CollectSet, Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always

points = (
    bm.Pipeline()
    .event_time("at", bm.BoundedOutOfOrderness("10 seconds"))
    .key_by("player")
    .window(bm.FixedWindows("1 minute"))
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("1 minute")
    .accumulating_and_retracting()
    .accumulate(points=Sum("point"))
)
players = (
    bm.Pipeline()  # no event time and no window: panes have both
    .key_by("points")
    .trigger(AfterWatermark(early=Always(), late=Always()))
    .allowed_lateness("1 minute")
    .accumulating_and_retracting()
    .only_updated_panes()
    .accumulate(players=Count(), names=CollectSet("player"))
)
standings = points.then(players)

script = (
    TestStream()
    .add([{"at": 1, "player": "ann", "point": 1}, {"at": 5, "player": "bob", "point": 1}])
    .add([{"at": 12, "player": "ann", "point": 1}])
    .advance_watermark_to(60)
    .add([{"at": 58, "player": "bob", "point": 1}])  # late
    .advance_watermark_to_infinity()
)

for number, (_, panes) in enumerate(script.trace(standings), 1):
    for pane in panes:
        who = ", ".join(pane.values["names"])
        print(f"event {number}  {pane.kind:10}  {pane.timing:7}  {pane.key['points']} points: {who}")
