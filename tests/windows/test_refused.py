"""Window options: wrong values are refused where they are written, with the value, the rule and the fix."""

from datetime import timedelta
from typing import Any

import attrs

import beamish as bm
from tests.refused import START, cases, refused


class NoAssign(bm.WindowOption):
    pass


@attrs.frozen
class OfColumns(bm.WindowOption):
    columns: Any

    def assign(self, timestamp_us, *values):
        yield timestamp_us, timestamp_us + 1


class Opaque(bm.WindowOption):
    def __init__(self):
        self.held = object()


AT_ONCE = {
    "fixed size 0": lambda: bm.FixedWindows(0),
    "fixed size negative": lambda: bm.FixedWindows("-1 minute"),
    "size rounds to 0": lambda: bm.FixedWindows(1e-9),
    "size is True": lambda: bm.FixedWindows(True),  # noqa: FBT003
    "size is nan": lambda: bm.FixedWindows(float("nan")),
    "size in microseconds": lambda: bm.FixedWindows(10**20),
    "size in months": lambda: bm.FixedWindows("1 month"),
    "unknown unit": lambda: bm.FixedWindows("1 fortnight"),
    "no unit": lambda: bm.FixedWindows("10"),
    "empty": lambda: bm.FixedWindows(""),
    "size None": lambda: bm.FixedWindows(None),
    "sliding period 0": lambda: bm.SlidingWindows("1 minute", 0),
    "difference negative": lambda: bm.AnchoredWindows(-1),
    "gap 0": lambda: bm.Sessions(timedelta()),
    "late rows of merged windows": lambda: bm.Sessions(10, late_rows="merged"),
    "within nothing": lambda: bm.Within(of="a"),
    "within negative": lambda: bm.Within(-1, of="a"),
    "within backwards": lambda: bm.Within("-2 minutes", of="a", after="1 minute"),
    "within a point without its bounds": lambda: bm.Within("-1 minute", of="a", after="1 minute", inclusive="left"),
    "within inclusive": lambda: bm.Within(1, of="a", inclusive="upper"),
    "within for ever": lambda: bm.Within(2**62 / 1e6, of="a", after=1),
    "within of 3": lambda: bm.Within(1, of=3),
    "cumulative step 0": lambda: bm.CumulativeWindows("1 minute", 0),
    "cumulative size, no multiple": lambda: bm.CumulativeWindows("1 hour", "25 minutes"),
    "cumulative size below the step": lambda: bm.CumulativeWindows("1 minute", "25 minutes"),
    "no calendar unit": bm.CalendarWindows,
    "two calendar units": lambda: bm.CalendarWindows(days=1, weeks=1),
    "0 days": lambda: bm.CalendarWindows(days=0),
    "1.5 days": lambda: bm.CalendarWindows(days=1.5),
    "unknown zone": lambda: bm.CalendarWindows(days=1, timezone="Mars/Base"),
    "zone offset": lambda: bm.CalendarWindows(days=1, timezone=3),
    "bad start": lambda: bm.CalendarWindows(days=1, starting="spring"),
    "window text": lambda: START.window("1 minute"),
    "window of an object": lambda: START.window(Opaque()),
    "window that never says": lambda: START.window(NoAssign()),
    "window of one column, not several": lambda: START.window(OfColumns("gap")),
    "windowing of no names": lambda: START.window({"a": OfColumns((3,))}),
    "windowing that never says": lambda: START.window({"a": NoAssign()}),
    "a class of windows": lambda: START.window(bm.Sessions),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])
