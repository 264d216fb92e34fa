"""Lesson 6: a second stage counts what the first one says; what if the first one corrects itself?

The first stage gives the points of each player, with a new pane after each line of STORY. The second
takes these panes as its rows and counts players by their points: how many have 5, how many have 8.
When ann's points rise from 5 to 8, she must leave one group and enter another.

The first stage can be run in three modes: discarding, accumulating, and accumulating_and_retracting,
in which each new pane comes after a RETRACTION: a row that takes back the pane before it.

Some say: "An accumulating pane says all so far, so the second stage has the right numbers."

Two people play. Write down, before you run it, for each of the three modes: how many players does
the second stage have in the end, with which points?
"""

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import Always

STORY = [  # plays that arrive together: player, points
    [("ann", 5), ("bob", 5)],
    [("ann", 3)],
]
by_player = (
    bm.Pipeline()
    .event_time("second", bm.BoundedOutOfOrderness("2 minutes"))
    .key_by("player")
    .window(bm.FixedWindows("1 hour"))
    .trigger(Always())  # a pane whenever plays come
    .accumulate(points=Sum("points"))
)
by_points = bm.Pipeline().key_by("points").trigger(Always()).accumulating_and_retracting().accumulate(players=Count())
first_stages = {
    "discarding": by_player.discarding(),
    "accumulating": by_player.accumulating(),
    "retracting": by_player.accumulating_and_retracting(),
}

script = TestStream()
for plays in STORY:
    script = script.add([{"player": player, "points": points, "second": 1} for player, points in plays])

print(__doc__)
print("The run.")
came = {}
for mode, first_stage in first_stages.items():
    print(f"\n{mode}: what the first stage says, and then the table of the second")
    for pane in first_stage.run(script):
        print(f"    {pane.kind:10} {pane.key['player']} has {pane.values['points']}")
    table = bm.live(first_stage.then(by_points).run(script))
    came[mode] = {pane.key["points"]: pane.values["players"] for pane in table}
    print("   ", ", ".join(f"{players} with {points}" for points, players in sorted(came[mode].items())))

believed = {5: 1, 8: 1}
right = [mode for mode, table in came.items() if table == believed]
counted = {mode: sum(table.values()) for mode, table in came.items()}
print(f"""
The answer. Two people play; the tables count {counted}. Right is only: {right[0]}.
"ann has 8" does not say what it replaces: to the second stage it is one more row, and ann stays
among those with 5. The retraction takes her out. Discarding panes are worse for groups (nobody ever
had 3), though sums of them are right. Rule: a stage that feeds a stage retracts.""")
