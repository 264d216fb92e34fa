"""Lesson 7: how many visits did ann pay us, and can that number fall?

A session is a window that plays make: those of a player that follow each other by less than 30
minutes are one visit. It lasts from its first play to 30 minutes after its last one. Here ann's plays
of 12:00 and 12:40 arrive; then one of 12:20 arrives, from a tunnel.

Each line gives panes at once, and a pane that no longer holds is retracted (lesson 6).

Some say: "A late play is put into a visit that is there. Visits grow, and new ones begin."

Write down, before you run it: after each of the three lines, which visits are there (from, to), and
how many points has each?
"""

import sys
from datetime import datetime

import beamish as bm
from beamish.accumulations import Sum
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always

STORY = [  # clock, watermark, the play that arrives: played, points
    ("12:00", "11:30", ("12:00", 5)),
    ("12:40", "11:30", ("12:40", 3)),
    ("12:45", "12:10", ("12:20", 1)),  # from the tunnel
]
visits = (
    bm.Pipeline()
    .event_time("played", bm.BoundedOutOfOrderness("30 minutes"))
    .key_by("player")
    .window(bm.Sessions("30 minutes"))
    .trigger(AfterWatermark(early=Always()))
    .accumulating_and_retracting()
    .accumulate(points=Sum("points"))
)


def at(clock: str) -> datetime:
    """A time of the day of the game."""
    return datetime.fromisoformat(f"2024-05-01T{clock}Z")


script = TestStream()
for clock, watermark, (played, points) in STORY:
    row = {"player": "ann", "played": at(played), "points": points}
    script = script.step([row], watermark=at(watermark), clock=at(clock))

print(__doc__)
print("The run.")
came: list[int] = []  # how many visits are live after each line
so_far: list[bm.Pane] = []
for (clock, _watermark, (played, points)), (_, panes) in zip(STORY, script.trace(visits), strict=True):
    print(f"\n{clock}: the play of {played} arrives (points: {points})")
    for pane in panes:
        print(f"    {pane.kind:10} {pane.start:%H:%M} to {pane.end:%H:%M}: {pane.values['points']}")
    so_far += panes
    came.append(len(bm.live(so_far)))

picture = bm.plot.timeline(visits, script, title=str(__doc__).partition("\n")[0])
print("\nThe picture:", picture.save(sys.argv[1]) if sys.argv[1:] else "name a file for it, such as lesson.svg")
believed = [1, 2, 2]
if came != [1, 2, 1]:
    print("\nYou changed the program, so this answer may not fit: docs/lessons.md has it for the original.")
print(f"""
The answer. The number of visits is {came}, one after each line; some expected {believed}.
The play of 12:20 is less than 30 minutes from both visits, so all is one visit: windows merge. The
panes of the two are retracted. A reader that wrote "2 visits" into a table must learn of it, so
windows that merge need retractions.""")
