"""Lesson 6: a stage corrects itself; does the stage after it notice?

The first stage gives the points of each player, with a new pane after each line of STORY. The second
takes these panes as its rows and counts players by their points: how many have 5, how many have 8.
When ann's points rise from 5 to 8, she must leave one group and enter another.

The first stage can be run in three modes: discarding, accumulating, and accumulating_and_retracting,
in which each new pane comes after a RETRACTION: a row that takes back the pane before it.

Some say: "An accumulating pane says all so far, so the second stage has the right numbers."

Two people play. Write down, before you run it, for each of the three modes: how many players have
how many points, by the table of the second stage?
"""

import sys
import warnings
from datetime import datetime

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import Always

STORY = [  # clock, plays that arrive together: player, points
    ("12:00", [("ann", 5), ("bob", 5)]),
    ("12:03", [("ann", 3)]),
]
by_player = (
    bm.Pipeline()
    .event_time("played", bm.BoundedOutOfOrderness("2 minutes"))
    .key_by("player")
    .window(bm.FixedWindows("10 minutes"))
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
for clock, plays in STORY:
    now = datetime.fromisoformat(f"2024-05-01T{clock}Z")
    script = script.step([{"player": player, "points": n, "played": now} for player, n in plays], clock=now)

warnings.filterwarnings("ignore", message=".* counts firings")  # it has the answer
print(__doc__)
print("The run: what the first stage says, and the table of the second in the end.")
came = {}
for mode, first_stage in first_stages.items():
    print(f"\n{mode}")
    for pane in first_stage.run(script):
        print(f"    {pane.kind:10} {pane.key['player']} has {pane.values['points']}")
    table = bm.live(first_stage.then(by_points).run(script))
    came[mode] = {pane.key["points"]: pane.values["players"] for pane in table}
    print("    table:", ", ".join(f"{players} with {points}" for points, players in sorted(came[mode].items())))

picture = bm.plot.timeline(first_stages["retracting"].then(by_points), script, title=str(__doc__).partition("\n")[0])
print("\nThe picture:", picture.save(sys.argv[1]) if sys.argv[1:] else "name a file for it, such as lesson.svg")
believed = {5: 1, 8: 1}  # one player has 5 points, one has 8
counted = ", ".join(f"{sum(table.values())} ({mode})" for mode, table in came.items())
if came != {"discarding": {3: 1, 5: 2}, "accumulating": {5: 2, 8: 1}, "retracting": {5: 1, 8: 1}}:
    print("\nYou changed the program, so this answer may not fit: docs/lessons.md has it for the original.")
print(f"""
The answer. Two people play; the tables count {counted}.
"ann has 8" does not say what it replaces. To the second stage it is one row more, so ann stays among
those with 5, until a RETRACTION takes her out. (Discarding panes are right for sums, but not for
groups: nobody ever had 3 points.) As a rule, a stage that feeds another retracts.""")
