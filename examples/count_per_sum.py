"""Two stages: the points of each player, then how many players have how many points.

When a player scores again, the first stage retracts its pane "ann has 1". The second stage removes that row, so ann leaves the
group of those with 1 point and joins another: live panes are correct after every bundle. An empty group is retracted without a
new pane.

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
