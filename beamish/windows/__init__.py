"""Window options: the assignment of rows to windows."""

from typing import TYPE_CHECKING

from beamish.exports import exported

if TYPE_CHECKING:
    from beamish.windows.calendar import CalendarWindows
    from beamish.windows.counting import CountSessions, CountWindows
    from beamish.windows.option import WindowOption
    from beamish.windows.rolling import Lifetime, Rolling, Span
    from beamish.windows.time_windows import (
        AnchoredWindows,
        CumulativeWindows,
        FixedWindows,
        GlobalWindow,
        Sessions,
        SlidingWindows,
    )
    from beamish.windows.windowings import Windowings
    from beamish.windows.within import Within
else:
    __getattr__ = exported(
        __name__,
        {
            "beamish.windows.calendar": "CalendarWindows",
            "beamish.windows.counting": "CountSessions CountWindows",
            "beamish.windows.option": "WindowOption",
            "beamish.windows.rolling": "Lifetime Rolling Span",
            "beamish.windows.time_windows": "AnchoredWindows CumulativeWindows FixedWindows GlobalWindow Sessions SlidingWindows",
            "beamish.windows.windowings": "Windowings",
            "beamish.windows.within": "Within",
        },
    )

__all__ = [
    "AnchoredWindows",
    "CalendarWindows",
    "CountSessions",
    "CountWindows",
    "CumulativeWindows",
    "FixedWindows",
    "GlobalWindow",
    "Lifetime",
    "Rolling",
    "Sessions",
    "SlidingWindows",
    "Span",
    "WindowOption",
    "Windowings",
    "Within",
]
