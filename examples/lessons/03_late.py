"""Lesson 3: what becomes of a play that comes when its window is over?

The watermark is a guess, and a guess may be wrong. A play that comes when the watermark is at the
end of its window, or past it, is late. `allowed_lateness("5 minutes")` says: keep a window until the
watermark is five minutes past its end. Until then a late play gives a pane of its own; after that it
is dropped. (What a window gives is called a pane; it may give several.)

The plays have names here. Three of them had no signal: A was 4 minutes on the way, B 18, C 9. On
each line the watermark moves first (the latest play of the lines above, less one minute), then one
play arrives.

Some say: "Five minutes are allowed. A took less, so it counts; B and C took more: they are dropped."

Write down, before you run it, for each of A, B and C: is it ON_TIME, LATE or DROPPED?
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
    ("12:22", "12:19", ("C", "12:13")),
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
came = {name: came[name] for name in "ABC"}
believed = {"A": "LATE", "B": "DROPPED", "C": "DROPPED"}
print(f"""
The answer. {", ".join(f"{name} is {fate}" for name, fate in came.items())}; some expected B to be {believed["B"]}.
How long a play was on the way does not matter, nor does the clock: only the watermark does. A met it
at the end of its window, so A is late, and allowed. Nothing came between 12:05 and 12:20, so it stood
still, and B's window (from 12:02) was open. Then x came, and it leapt to 12:19: C's window (12:12 to
12:14) ended and expired in that moment.""")
