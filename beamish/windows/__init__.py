"""Window options: the assignment of rows to windows."""

from beamish.windows.calendar import CalendarWindows
from beamish.windows.counting import CountSessions, CountWindows
from beamish.windows.option import WindowOption
from beamish.windows.time_windows import FixedWindows, GlobalWindow, Sessions, SlidingWindows
from beamish.windows.windowings import Windowings
from beamish.windows.within import Within

__all__ = [
    "CalendarWindows",
    "CountSessions",
    "CountWindows",
    "FixedWindows",
    "GlobalWindow",
    "Sessions",
    "SlidingWindows",
    "WindowOption",
    "Windowings",
    "Within",
]
