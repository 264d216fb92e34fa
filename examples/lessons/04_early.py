"""Lesson 4: the window is an hour long; must the reader wait for an hour?

A trigger says when a window gives a pane. So far each gave one when the watermark was at its end.
`AfterWatermark(early=..., late=...)` gives others before and after. `early=AfterProcessingTime("1
minute")` gives one when a minute of the clock has passed since the first play that is in no pane yet.
Panes accumulate here: each says all points so far (lesson 5).

On each line the watermark and the clock move first, then plays arrive.

Some say: "So there is an early pane every minute."

Write down, before you run it: on which lines does the window from 12:00 to 13:00 give a pane, and
with how many points?
"""

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
    ("13:02", "12:01", [("13:02", 4)]),
    ("13:03", "13:00", []),
]
windows = (
    bm.Pipeline()
    .event_time("played", bm.BoundedOutOfOrderness("2 minutes"))
    .window(bm.FixedWindows("1 hour"))
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
    out = ", ".join(f"{pane.start:%H:%M} {pane.timing}: {pane.values['points']}" for pane in panes)
    print(f"{clock}  {watermark}      {arrives:28}{out}".rstrip())
    came += [(clock, pane.values["points"]) for pane in panes if pane.start == at("12:00")]

believed = [(clock, 10 if clock >= "12:03" else 5) for clock, _, _ in STORY[1:6]]
print(f"""
The answer. {came}
Some expected {believed}.
The delay begins with a play, not with the minute. Where nothing is new, nothing is said; the pane at
the end comes in any case, so that the reader knows that it is the end. Nobody waited for an hour:
after a minute there was a first answer, marked EARLY, and it was corrected.""")
