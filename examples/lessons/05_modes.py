"""Lesson 5: a window gives three panes; what may the reader do with them?

A pane holds either what is new since the pane before it (`discarding()`) or all so far
(`accumulating()`). A reader downstream either adds up what comes (a counter) or replaces what it
has (a table, by window). That makes four combinations.

Some say: "Accumulating panes hold everything, so nobody can go wrong with them."

Write down, before you run it, the points that the reader has in the end for the window from 12:00
to 12:02, in each of the four. The window gives a pane when two plays have come, one when the
watermark is at its end, and one for each late play.
"""

import sys
from datetime import datetime

import beamish as bm
from beamish.accumulations import Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark

STORY = [  # clock, watermark, the play that arrives: played, points
    ("12:00", "11:58", ("12:00", 5)),
    ("12:01", "11:58", ("12:01", 3)),  # two plays have come
    ("12:02", "11:59", ("12:01", 1)),
    ("12:04", "11:59", ("12:04", 2)),  # of another window
    ("12:05", "12:02", ("12:01", 4)),  # the watermark is at the end, and the play is late
]
panes_hold = (
    bm.Pipeline()
    .event_time("played", bm.BoundedOutOfOrderness("2 minutes"))
    .window(bm.FixedWindows("2 minutes"))
    .trigger(AfterWatermark(early=AfterCount(2), late=AfterCount(1)))
    .allowed_lateness("1 hour")
    .accumulate(points=Sum("points"))
)


def at(clock: str) -> datetime:
    """A time of the day of the game."""
    return datetime.fromisoformat(f"2024-05-01T{clock}Z")


script = TestStream()
for clock, watermark, (played, points) in STORY:
    script = script.step([{"played": at(played), "points": points}], watermark=at(watermark), clock=at(clock))

print(__doc__)
print("The run.\n")
came = {}
for mode, pipeline in {"discarding": panes_hold.discarding(), "accumulating": panes_hold.accumulating()}.items():
    panes = pipeline.run(script)
    print(f"{mode + ':':14}", ", ".join(f"{pane.timing} {pane.values['points']}" for pane in panes))
    came[mode, "adds"] = sum(pane.values["points"] for pane in panes)
    came[mode, "replaces"] = panes[-1].values["points"]
print("\npanes are     the reader adds  the reader replaces")
for mode in ("discarding", "accumulating"):
    print(f"{mode:12}  {came[mode, 'adds']:15}  {came[mode, 'replaces']:19}")

picture = bm.plot.timeline(panes_hold.accumulating(), script, title=str(__doc__).partition("\n")[0])
print("\nThe picture:", picture.save(sys.argv[1]) if sys.argv[1:] else "name a file for it, such as lesson.svg")
scored = sum(points for _, _, (played, points) in STORY if played < "12:02")
believed = dict.fromkeys([("accumulating", "adds"), ("accumulating", "replaces")], scored)
if list(came.values()) != [13, 4, 30, 13]:
    print("\nYou changed the program, so this answer may not fit: docs/lessons.md has it for the original.")
print(f"""
The answer. {scored} points were scored. Adding up accumulating panes is wrong ({came["accumulating", "adds"]}): each repeats the points
of those before it. Replacing by discarding panes is wrong too ({came["discarding", "replaces"]}): each holds only its new points.
Choose the mode by the reader: a counter wants discarding panes, a table accumulating ones.
And if the reader is another pipeline? That is lesson 6.""")
