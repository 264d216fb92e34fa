"""The expected contents of a picture, computed from the run's panes and not from the picture."""

from __future__ import annotations

from collections import Counter

from beamish import PaneKind
from beamish.instants import END_OF_TIME_US, instant_us
from beamish.plot import Picture
from beamish.script import as_step


def plain(value):
    return repr(value)


def boxes_in(picture: Picture) -> Counter[tuple[object, ...]]:
    """Each box that is drawn: of which stage and key, where, what of, whether it is struck out and when."""
    return Counter(
        (
            panel.stage,
            plain(panel.key),
            (box.start_us, box.end_us),
            box.time,
            box.timing,
            plain(dict(box.pane.values)),
            box.retracted_at,
        )
        for panel in picture.panels
        for box in panel.boxes
    )


def boxes_of(trace, times, stage: int = 0) -> Counter[tuple[object, ...]]:
    """Each pane of a trace, and the time of its retraction."""
    boxes: list[list[object]] = []
    for (_, panes), time in zip(trace, times, strict=True):
        for pane in panes:
            bounds = (-END_OF_TIME_US, END_OF_TIME_US)
            if pane.window is not None and pane.window.start is not None:
                bounds = instant_us("start", pane.start), instant_us("end", pane.end)
            told = [stage, plain(dict(pane.key)), bounds, plain(dict(pane.values))]
            if pane.kind is PaneKind.PANE:
                boxes.append([*told, time, pane.timing, None, pane.index])
            elif pane.kind is PaneKind.RETRACTION:
                taken = next(
                    one for one in reversed(boxes) if one[:4] == told and one[7] == pane.index and one[6] is None
                )
                taken[6] = time
    return Counter((one[0], one[1], one[2], one[4], one[5], one[3], one[6]) for one in boxes)


def clock_times(events) -> list[float]:
    """The clock at each event of a script that begins by setting it."""
    clock, times = 0.0, []
    for event in events:
        us = as_step(event).clock_us
        clock = clock if us is None else float(us)
        times.append(clock)
    return times
