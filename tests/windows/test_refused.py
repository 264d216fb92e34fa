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


# The call, and fragments of the message: value, rule, fix.
AT_ONCE = [
    ("fixed size 0", lambda: bm.FixedWindows(0), ["FixedWindows(size)=0", "above 0"]),
    ("fixed size negative", lambda: bm.FixedWindows("-1 minute"), ["'-1 minute'", "above 0"]),
    ("size rounds to 0", lambda: bm.FixedWindows(1e-9), ["1e-09", "above 0"]),
    ("size is True", lambda: bm.FixedWindows(True), ["True", "'10 minutes'"]),  # noqa: FBT003
    ("size is nan", lambda: bm.FixedWindows(float("nan")), ["nan", "'10 minutes'"]),
    ("size in microseconds", lambda: bm.FixedWindows(10**20), ["146,000 years"]),
    ("size in months", lambda: bm.FixedWindows("1 month"), ["no fixed length", "CalendarWindows(months=...)"]),
    ("unknown unit", lambda: bm.FixedWindows("1 fortnight"), ["fortnight", "weeks, days"]),
    ("no unit", lambda: bm.FixedWindows("10"), ["'10'", "'10 minutes'"]),
    ("empty", lambda: bm.FixedWindows(""), ["''", "'10 minutes'"]),
    ("size None", lambda: bm.FixedWindows(None), ["None", "'10 minutes'"]),
    ("sliding period 0", lambda: bm.SlidingWindows("1 minute", 0), ["SlidingWindows(period)=0", "above 0"]),
    ("gap 0", lambda: bm.Sessions(timedelta()), ["Sessions(gap)", "above 0"]),
    (
        "within nothing",
        lambda: bm.Within(of="a"),
        ["Within(before='0 seconds', of='a')", "Within('10 minutes'", "after="],
    ),
    ("within negative", lambda: bm.Within(-1, of="a"), ["Within(before)=-1", "not be negative"]),
    ("within of 3", lambda: bm.Within(1, of=3), ["Within(of=3)", "name of an input"]),
    ("no calendar unit", bm.CalendarWindows, ["exactly one of days, weeks, months and years"]),
    ("two calendar units", lambda: bm.CalendarWindows(days=1, weeks=1), ["exactly one"]),
    ("0 days", lambda: bm.CalendarWindows(days=0), ["days=0", "at least 1"]),
    ("1.5 days", lambda: bm.CalendarWindows(days=1.5), ["days=1.5", "whole number"]),
    ("unknown zone", lambda: bm.CalendarWindows(days=1, timezone="Mars/Base"), ["'Mars/Base'", "'Europe/Paris'"]),
    ("zone offset", lambda: bm.CalendarWindows(days=1, timezone=3), ["timezone=3", "IANA"]),
    ("bad start", lambda: bm.CalendarWindows(days=1, starting="spring"), ["'spring'", "'2024-01-01'"]),
    ("window text", lambda: START.window("1 minute"), ["'1 minute'", "FixedWindows"]),
    ("window of an object", lambda: START.window(Opaque()), ["window(option)=Opaque(", "has no identity", "attrs"]),
    (
        "window that never says",
        lambda: START.window(NoAssign()),
        ["window(option)=NoAssign()", "assign(self, timestamp_us)"],
    ),
    (
        "window of one column, not several",
        lambda: START.window(OfColumns("gap")),
        ["window(option)=OfColumns(", "OfColumns.columns is 'gap'", "tuple of column names", "columns = ('gap',)"],
    ),
    (
        "windowing of no names",
        lambda: START.window({"a": OfColumns((3,))}),
        ["'a'=OfColumns(", "columns is (3,)", "tuple of column names", "columns = ('gap',)"],
    ),
    ("windowing that never says", lambda: START.window({"a": NoAssign()}), ["'a'=NoAssign()", "assign(self,"]),
    ("a class of windows", lambda: START.window(bm.Sessions), ["window(option)=Sessions:", "write Sessions(...)"]),
]


@cases(AT_ONCE, "call", "fragments")
def test_an_invalid_option_is_rejected_at_its_call(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)
