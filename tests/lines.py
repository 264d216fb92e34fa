"""A pane as one readable line, as it stands in a transcript.

``PANE team=red [0, 10) total=5 EARLY index=0 first`` - and, where they are not what one expects, ``on_time_index=``
(expected: -1 for EARLY, else what the transcript says) and ``at=`` (expected: the window's last microsecond).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from beamish import Pane, PaneKind, PaneTiming, RowWindow, Window
from beamish.instants import instant, instant_us


def line(pane: Pane) -> str:
    """A pane in one line."""
    keys = (f"{name}={when(value) if isinstance(value, datetime) else value}" for name, value in pane.key.items())
    words = [pane.kind.value, *keys, window(pane.window)]
    words += [f"{name}={plain(value)}" for name, value in pane.values.items()]
    if pane.kind is PaneKind.DROPPED:
        late = f"{pane.late_by_rows}_rows" if isinstance(pane.window, RowWindow) else seconds(pane.late_by_us)
        return " ".join([*words, f"{pane.reason.value}" if pane.reason else "?", f"late_by={late}"])
    words += [pane.timing.value, f"index={pane.index}"]
    if pane.timing is not PaneTiming.EARLY or pane.on_time_index != -1:
        words += [f"on_time_index={pane.on_time_index}"]
    words += ["first"] * pane.is_first + ["last"] * pane.is_last
    end = None if pane.window is None or isinstance(pane.window, RowWindow) else pane.window.end
    if pane.timestamp != (None if end is None else instant(instant_us("end", end) - 1)):
        words += [f"at={when(pane.timestamp)}"]
    return " ".join(words)


def window(bounds: Window | RowWindow | None) -> str:
    """``[0, 10)``; ``global``; ``rows [0, 3)``; or ``no window`` for a row without event time."""
    if bounds is None:
        return "no window"
    if isinstance(bounds, RowWindow):
        return f"rows [{bounds.start}, {bounds.end})"
    if bounds.start is None:
        return "global"
    return f"[{when(bounds.start)}, {when(bounds.end)})"


def when(time: datetime | None) -> str:
    """Seconds since the epoch, or the ISO form after 2001."""
    if time is None:
        return "None"
    us = instant_us("time", time)
    return seconds(us) if us < 10**15 else time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def seconds(us: int | None) -> str:
    """Microseconds as seconds."""
    return "None" if us is None else f"{us / 1e6:.6f}".rstrip("0").rstrip(".")


def plain(value: Any) -> str:
    """A value without spaces."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name!r}:{plain(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(plain, value)) + "]"
    return when(value) if isinstance(value, datetime) else repr(value).replace(", ", ",").replace(": ", ":")
