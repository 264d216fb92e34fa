"""Lesson 1: which time counts, when a play was played or when we heard of it?

A game runs on phones. A play scores points, and the phone sends it at once, if it has a signal.
Ann's phone is in a tunnel from 12:01 to 12:05: what she plays there arrives when she comes out (see
PLAYS in this file). Points are added up in windows of two minutes: from 12:00, from 12:02, and so on.

Some say: "A play counts in the minutes in which it arrives."

Write down, before you run it: how many points were scored in the window from 12:00 (12:02 is no longer
in it)? In the window from 12:02? Which of that changes if she comes out of the tunnel at 12:07?
"""

import sys
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


def windows(time: str) -> bm.Pipeline:
    """Points in windows of two minutes, by one of the two times: by "played" or by "arrived"."""
    return (
        bm.Pipeline()
        .event_time(time, bm.BoundedOutOfOrderness("0 minutes"))  # lesson 2 is about this
        .window(bm.FixedWindows("2 minutes"))
        .accumulate(points=Sum("points"))
    )


def story(plays: list[tuple[str, str, int]]) -> TestStream:
    """The plays arrive one after the other; then comes the end of time, and windows say what they hold."""
    script = TestStream()
    for played, arrived, points in plays:
        script = script.step([{"played": at(played), "arrived": at(arrived), "points": points}], clock=at(arrived))
    return script.advance_processing_time_by("1 minute").advance_watermark_to_infinity()


def points_by(time: str, plays: list[tuple[str, str, int]]) -> dict[str, int]:
    """The output: points by the start of the window."""
    return {f"{pane.start:%H:%M}": pane.values["points"] for pane in windows(time).run(story(plays))}


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

picture = bm.plot.timeline(windows("played"), story(PLAYS), title=str(__doc__).partition("\n")[0])
print("\nThe picture:", picture.save(sys.argv[1]) if sys.argv[1:] else "name a file for it, such as lesson.svg")
if came != {"12:00": 12, "12:02": 3}:
    print("\nYou changed the program, so this answer may not fit: docs/lessons.md has it for the original.")
print(f"""
The answer. {came["12:00"]} points in the window from 12:00, {came["12:02"]} in that from 12:02, whatever the tunnel does.
By arrival it would be {believed["12:00"]} and {believed["12:02"]}, and another tunnel would give other numbers. When a play was played
is its event time; when it is worked on is processing time. Here everything had come before we
counted. But a stream never ends: when do we count then? That is lesson 2.""")
