"""Lesson 1: which time counts, when a play was played or when we heard of it?

A game runs on phones. A play scores points, and the phone sends it at once, if it has a signal.
Ann's phone is in a tunnel from 12:01 to 12:05: what she plays there arrives when she comes out.
Look at PLAYS in this file.

Some say: "A play counts in the minutes in which it arrives."

Write down, before you run it: how many points were scored in the two minutes from 12:00 (12:02 is
no longer in them)? In the two minutes from 12:02? Which of that changes if she comes out at 12:07?
"""

from datetime import datetime

import beamish as bm
from beamish.accumulations import Sum
from beamish.testing import TestStream

PLAYS = [  # played, arrived, points
    ("12:00", "12:00", 5),
    ("12:01", "12:01", 3),
    ("12:03", "12:03", 2),
    ("12:01", "12:05", 4),  # from the tunnel
    ("12:02", "12:05", 1),  # from the tunnel
]


def at(clock: str) -> datetime:
    """A time of the day of the game."""
    return datetime.fromisoformat(f"2024-05-01T{clock}Z")


def points_by(time: str, plays: list[tuple[str, str, int]]) -> dict[str, int]:
    """The points of each two minutes, by one of the two times: by "played" or by "arrived"."""
    windows = (
        bm.Pipeline()
        .event_time(time, bm.BoundedOutOfOrderness("0 minutes"))  # lesson 2 is about this
        .window(bm.FixedWindows("2 minutes"))
        .accumulate(points=Sum("points"))
    )
    rows = [{"played": at(played), "arrived": at(arrived), "points": points} for played, arrived, points in plays]
    panes = windows.run(TestStream().add(rows).advance_watermark_to_infinity())  # all rows, then the end
    return {f"{pane.start:%H:%M}": pane.values["points"] for pane in panes}


print(__doc__)
print("The run. The plays by their points: across when they were played, up when they arrived.\n")
for minute in ("12:05", "12:04", "12:03", "12:02", "12:01", "12:00"):
    here = {played: str(points) for played, arrived, points in PLAYS if arrived == minute}
    line = "".join(f"{here.get(played, ''):^8}" for played in ("12:00", "12:01", "12:02", "12:03"))
    print(f"  {minute} |{line}".rstrip())
print("        +---------------+---------------+\n          12:00   12:01   12:02   12:03\n")

late = [(played, arrived.replace("12:05", "12:07"), points) for played, arrived, points in PLAYS]
came, believed = points_by("played", PLAYS), points_by("arrived", PLAYS)
print("points by when they were played:", came)
print("points by when they arrived:    ", believed)
print("if she comes out at 12:07:      ", points_by("played", late), "and", points_by("arrived", late))

print(f"""
The answer. {came["12:00"]} points from 12:00, {came["12:02"]} points from 12:02, whatever the tunnel does. By arrival it is
{believed["12:00"]} and {believed["12:02"]} and the rest later, and each tunnel moves it. When a play was played is its event time, when
it is worked on is processing time. Here we counted when all had come. A stream never ends: when then?""")
