"""Lesson 4: a window is ten minutes long; must the reader wait for ten minutes?

A trigger says when a window gives a pane. So far each gave one when the watermark was at its end.
`AfterWatermark(early=..., late=...)` gives others before and after that. Here `early` is
`AfterProcessingTime("1 minute")`: when a minute of the clock has passed since a play came that is in
no pane yet. Panes accumulate: each says all points so far.

On each line the watermark and the clock move first, then plays arrive.

Some say: "So there is an early pane every minute."

Write down, before you run it: on which lines does the window from 12:00 to 12:10 give a pane, and
with how many points?
"""

import sys
from datetime import datetime

import beamish as bm
from beamish.accumulations import Sum
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, AfterWatermark

STORY = [  # clock, watermark, plays that arrive: played, points
    ("12:00", "11:58", [("12:00", 5)]),
    ("12:01", "11:58", []),
    ("12:02", "11:58", []),
    ("12:03", "11:58", [("12:01", 3), ("12:03", 2)]),
    ("12:04", "12:01", []),
    ("12:05", "12:01", []),
    ("12:12", "12:01", [("12:12", 4)]),
    ("12:13", "12:10", []),
]
windows = (
    bm.Pipeline()
    .event_time("played", bm.BoundedOutOfOrderness("2 minutes"))
    .window(bm.FixedWindows("10 minutes"))
    .trigger(AfterWatermark(early=AfterProcessingTime("1 minute")))
    .accumulating()
    .accumulate(points=Sum("points"))
)


def at(clock: str) -> datetime:
    """A time of the day of the game."""
    return datetime.fromisoformat(f"2024-05-01T{clock}Z")


script = TestStream()
for clock, watermark, plays in STORY:
    rows = [{"played": at(played), "points": points} for played, points in plays]
    script = script.step(rows, watermark=at(watermark), clock=at(clock))

print(__doc__)
print("The run.\n\nclock  watermark  arrives (points of a time)  comes out")
came: list[tuple[str, int]] = []
for (clock, watermark, plays), (_, panes) in zip(STORY, script.trace(windows), strict=True):
    arrives = ", ".join(f"{points} of {played}" for played, points in plays)
    out = ", ".join(f"from {pane.start:%H:%M} {pane.timing}: {pane.values['points']}" for pane in panes)
    print(f"{clock}  {watermark}      {arrives:28}{out}".rstrip())
    came += [(clock, pane.values["points"]) for pane in panes if pane.start == at("12:00")]

picture = bm.plot.timeline(windows, script, title=str(__doc__).partition("\n")[0])
print("\nThe picture:", picture.save(sys.argv[1]) if sys.argv[1:] else "name a file for it, such as lesson.svg")
believed = [("12:01", 5), ("12:02", 5), ("12:03", 5), ("12:04", 10), ("12:05", 10), ("12:13", 10)]
if came != [("12:01", 5), ("12:04", 10), ("12:13", 10)]:
    print("\nYou changed the program, so this answer may not fit: docs/lessons.md has it for the original.")
print(f"""
The answer. {", ".join(f"{clock}: {points}" for clock, points in came)}; some expected
{", ".join(f"{clock}: {points}" for clock, points in believed)}.
The minute begins with a play. Where nothing is new nothing is said; only at the end a pane comes in
any case, so that the reader knows that it is the end. Nobody waited for ten minutes: after one there
was a first answer, marked EARLY, and a later one corrected it.""")
