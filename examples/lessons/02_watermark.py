"""Lesson 2: a stream never ends; when are two minutes of it over?

Plays come late (lesson 1), so the clock cannot tell whether all plays of 12:00 to 12:02 are in. It
takes a guess of how far event time has come: the watermark. Here it is the latest play that has come,
less two minutes. It says: "No play from before this will come any more." A window gives its points,
once, when the watermark is at its end.

On each line of STORY the watermark moves first (the latest play of the lines above, less two
minutes; the game begins at 12:00), then plays arrive.

Some say: "The window from 12:00 to 12:02 gives its points when the clock says 12:02."

Write down, before you run it, for the windows from 12:00, 12:02, 12:04 and 12:06: on which line of
STORY does it give its points, and how many?
"""

import sys
from datetime import datetime, timedelta

import beamish as bm
from beamish.accumulations import Sum
from beamish.testing import TestStream

STORY = [  # clock, plays that arrive: played, points
    ("12:00", [("12:00", 5)]),
    ("12:01", [("12:01", 3)]),
    ("12:03", [("12:03", 2)]),
    ("12:05", [("12:01", 4), ("12:02", 1)]),  # from the tunnel
    ("12:06", [("12:05", 6)]),
    ("12:08", [("12:06", 7)]),
    ("12:30", []),
    ("12:59", []),
]
windows = (
    bm.Pipeline()
    .event_time("played", bm.BoundedOutOfOrderness("2 minutes"))
    .window(bm.FixedWindows("2 minutes"))
    .accumulate(points=Sum("points"))
)


def at(clock: str) -> datetime:
    """A time of the day of the game."""
    return datetime.fromisoformat(f"2024-05-01T{clock}Z")


script, watermarks, latest = TestStream(), [], at("12:00")
for clock, plays in STORY:
    watermarks.append(latest - timedelta(minutes=2))
    rows = [{"played": at(played), "points": points} for played, points in plays]
    script = script.step(rows, watermark=watermarks[-1], clock=at(clock))
    latest = max([latest, *(at(played) for played, _ in plays)])

print(__doc__)
print("The run.\n\nclock  watermark  arrives (points of a time)  comes out")
came: dict[str, tuple[str, int]] = {}  # by window: on which line, how many points
for (clock, plays), watermark, (_, panes) in zip(STORY, watermarks, script.trace(windows), strict=True):
    arrives = ", ".join(f"{points} of {played}" for played, points in plays)
    out = ", ".join(f"{pane.start:%H:%M} to {pane.end:%H:%M}: {pane.values['points']}" for pane in panes)
    print(f"{clock}  {watermark:%H:%M}      {arrives:28}{out}".rstrip())
    came |= {f"{pane.start:%H:%M}": (clock, pane.values["points"]) for pane in panes}

picture = bm.plot.timeline(windows, script, title=str(__doc__).partition("\n")[0])
print("\nThe picture:", picture.save(sys.argv[1]) if sys.argv[1:] else "name a file for it, such as lesson.svg")
arrived = sum(points for clock, plays in STORY for _, points in plays if clock < "12:02")
believed = {"12:00": (next(clock for clock, _ in STORY if clock >= "12:02"), arrived)}
if came != {"12:00": ("12:08", 12), "12:02": ("12:30", 3)}:
    print("\nYou changed the program, so this answer may not fit: docs/lessons.md has it for the original.")
print(f"""
The answer. {", ".join(f"{n} points from {start} on line {clock}" for start, (clock, n) in came.items())}.
The windows from 12:04 and 12:06 wait for ever: the watermark stops at {watermarks[-1]:%H:%M}, because no play
moves it any more, and the clock alone ends no window. (On Spark people ask: "why does my window never
close?") By the clock the first would have come on line {believed["12:00"][0]} with {arrived} points, the tunnel's missing.""")
