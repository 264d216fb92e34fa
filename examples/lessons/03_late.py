"""Lesson 3: what becomes of a play that comes when its window is over?

The watermark is a guess, and a guess may be wrong. A play that comes when the watermark is at the
end of its window, or past it, is late. `allowed_lateness("5 minutes")` says: keep a window until the
watermark is five minutes past its end. Until then a late play gives a pane of its own; after that it
is dropped. (What a window gives is called a pane; it may give several.)

The plays have names here. Four of them had no signal: A was 4 minutes on the way, B 18, C 11, D 4.
On each line the watermark moves first (the latest play of the lines above, less one minute), then
one play arrives.

Some say: "Five minutes are allowed. A and D took less, so they count, as late ones; B and C took more:
they are dropped."

Write down, before you run it, for each of A, B, C and D: is it ON_TIME, LATE or DROPPED?
"""

import sys
from datetime import datetime

import beamish as bm
from beamish.accumulations import Collect
from beamish.testing import TestStream

STORY = [  # clock, watermark, the play that arrives: its name, played
    ("12:00", "11:59", ("u", "12:00")),
    ("12:01", "11:59", ("v", "12:01")),
    ("12:03", "12:00", ("w", "12:03")),
    ("12:05", "12:02", ("A", "12:01")),
    ("12:20", "12:02", ("B", "12:02")),
    ("12:21", "12:02", ("x", "12:20")),
    ("12:22", "12:19", ("D", "12:18")),
    ("12:23", "12:19", ("y", "12:22")),
    ("12:24", "12:21", ("C", "12:13")),
]
windows = (
    bm.Pipeline()
    .event_time("played", bm.BoundedOutOfOrderness("1 minute"))
    .window(bm.FixedWindows("2 minutes"))
    .allowed_lateness("5 minutes")
    .discarding()  # a pane holds what is new in it (lesson 5)
    .with_dropped()  # emits dropped rows as well
    .accumulate(plays=Collect("name"))
)


def at(clock: str) -> datetime:
    """A time of the day of the game."""
    return datetime.fromisoformat(f"2024-05-01T{clock}Z")


script = TestStream()
for clock, watermark, (name, played) in STORY:
    script = script.step([{"name": name, "played": at(played)}], watermark=at(watermark), clock=at(clock))

print(__doc__)
print("The run.\n\nclock  watermark  arrives     comes out")
came: dict[str, str] = {}
for (clock, watermark, (name, played)), (_, panes) in zip(STORY, script.trace(windows), strict=True):
    out = ""
    for pane in panes:
        dropped = pane.kind == bm.PaneKind.DROPPED
        plays = [pane.values["name"]] if dropped else sorted(pane.values["plays"])
        fate = "DROPPED" if dropped else pane.timing.value
        came |= dict.fromkeys(plays, fate)
        out += f"from {pane.start:%H:%M} {fate}: {' '.join(plays)}  "
    print(f"{clock}  {watermark}      {name} of {played}  {out}".rstrip())

picture = bm.plot.timeline(windows, script, title=str(__doc__).partition("\n")[0])
print("\nThe picture:", picture.save(sys.argv[1]) if sys.argv[1:] else "name a file for it, such as lesson.svg")
came = {name: came.get(name, "in no pane") for name in "ABCD"}
believed = {"A": "LATE", "B": "DROPPED", "C": "DROPPED", "D": "LATE"}
if came != {"A": "LATE", "B": "ON_TIME", "C": "DROPPED", "D": "ON_TIME"}:
    print("\nYou changed the program, so this answer may not fit: docs/lessons.md has it for the original.")
print(f"""
The answer. {", ".join(f"{name} is {fate}" for name, fate in came.items())}; some expected
B to be {believed["B"]} and D to be {believed["D"]}.
How long a play was on the way does not matter, nor does the clock: late depends on the watermark and
the end of the play's window. A met the watermark at the end of its window, so A is late, and allowed.
Nothing came between 12:05 and 12:20, so the watermark stood still, and B's window (from 12:02) was
open. D is behind the watermark (12:19), but its window (from 12:18) had not ended: D is on time. When
x came, the watermark moved to 12:19 (the next line): C's window (12:12 to 12:14) ended and expired.""")
