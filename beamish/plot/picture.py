"""The content of a timeline, before it is drawn: rows, watermarks and panes in event time and processing time.

Independent of any plotting package. Tests compare drawings with these values, and these with the panes.

Processing time is microseconds since the epoch if there is a clock. Otherwise step n lasts from n - 1 to n: rows are in its
middle, panes at its end.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.errors import OptionError
from beamish.instants import END_OF_TIME_US, instant_us
from beamish.pane import DropReason, Pane, PaneKind, PaneTiming, RowWindow

ALL_OF_TIME = (-END_OF_TIME_US, END_OF_TIME_US)
"""The bounds of an unbounded window."""


@attrs.frozen
class Point:
    """An input row; in a later stage of a chain a pane of the stage before; or a pane without window of this stage.

    Attributes:
        event_us: its event time, microseconds since the epoch; None: it has none.
        time: its processing time.
        label: its label.
        input: its input, in a merge.
        watermark_us: the watermark when it arrived, microseconds; None: there was none.
        late: the watermark had reached the end of its window when it arrived.
        dropped: its drop reason; None: not dropped.
        kept: it was dropped from some of its windows only.
        is_pane: it is a pane, of the stage before or of this one.
        retracts: it is a retraction of such a pane.
        is_output: it is a pane of this stage.
    """

    event_us: int | None
    time: float
    label: str
    input: str | None = None
    watermark_us: int | None = None
    late: bool = False
    dropped: DropReason | None = None
    kept: bool = False
    is_pane: bool = False
    retracts: bool = False
    is_output: bool = False


@attrs.frozen
class Watermark:
    """The progress of a watermark.

    Attributes:
        name: its input, in a merge; None: the merged one.
        steps: processing time and the watermark from then on, in microseconds; increasing.
    """

    name: str | None
    steps: tuple[tuple[float, int], ...]

    def at(self, time: float) -> int | None:
        """The watermark at a processing time; None: there was none yet."""
        return next((us for since, us in reversed(self.steps) if since <= time), None)


@attrs.frozen
class Box:
    """A window when it emitted a pane.

    Attributes:
        start_us, end_us: the window, microseconds since the epoch; ``ALL_OF_TIME`` for an unbounded one.
        since: processing time of the pane before, or of the first row.
        time: processing time of the pane.
        label: the pane's values, one per line.
        pane: the pane.
        retracted_at: processing time of its retraction; None: it is live, or replaced by the next pane.
    """

    start_us: int
    end_us: int
    since: float
    time: float
    label: str
    pane: Pane
    retracted_at: float | None = None

    @property
    def timing(self) -> PaneTiming:
        """Early, on time or late."""
        return self.pane.timing


@attrs.frozen
class OpenWindow:
    """A window that is open at the end of a script: the watermark has not reached its end, or it has rows in no pane yet.

    Attributes:
        start_us, end_us: the window, as of a ``Box``.
        since: processing time of its last pane, or of its first row.
        label: the values that a pane would have, one per line; empty: all its rows are in a pane.
    """

    start_us: int
    end_us: int
    since: float
    label: str


@attrs.frozen
class Panel:
    """The timeline of one stage and key.

    Attributes:
        name: its title; empty: a single panel.
        stage: the number of the stage, from 0.
        key: the key columns; empty: not keyed.
        points, watermarks, boxes: its content, in order of time; the merged watermark is the last.
        open_windows: by end and start; of stored panes none are known.
    """

    name: str
    stage: int
    key: Mapping[str, Any]
    points: tuple[Point, ...]
    watermarks: tuple[Watermark, ...]
    boxes: tuple[Box, ...]
    open_windows: tuple[OpenWindow, ...] = ()


@attrs.frozen
class Picture:
    """All panels, the last stage first, on the same axes.

    Attributes:
        panels: at least one.
        title: above them; None: no title.
        by_clock: whether processing time is a clock; otherwise steps are numbered.
        ideal: whether to show the line where processing time equals event time.
    """

    panels: tuple[Panel, ...]
    title: str | None
    by_clock: bool
    ideal: bool

    @property
    def event_span(self) -> tuple[int, int]:
        """The first and the last event time to show, microseconds since the epoch."""
        known = [us for panel in self.panels for us in _events_of(panel)]
        known = known or [
            us for panel in self.panels for line in panel.watermarks for _, us in line.steps if _is_time(us)
        ]
        return (min(known), max(known)) if known else (0, 1_000_000)

    @property
    def time_span(self) -> tuple[float, float]:
        """The first and the last processing time to show."""
        known = [time for panel in self.panels for time in _times_of(panel)]
        return (min(known), max(known)) if known else (0.0, 1.0)

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs of merges, in order."""
        names = [line.name for panel in self.panels for line in panel.watermarks]
        names += [point.input for panel in self.panels for point in panel.points]
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def moments(self) -> list[float]:
        """The processing times of all changes."""
        return sorted({time for panel in self.panels for time in _times_of(panel)})


def _is_time(us: int) -> bool:
    return -END_OF_TIME_US < us < END_OF_TIME_US


def _events_of(panel: Panel) -> Iterator[int]:
    yield from (point.event_us for point in panel.points if point.event_us is not None)
    windows: list[Box | OpenWindow] = [*panel.boxes, *panel.open_windows]
    for box in windows:
        yield from (us for us in (box.start_us, box.end_us) if _is_time(us))


def _times_of(panel: Panel) -> Iterator[float]:
    yield from (point.time for point in panel.points)
    yield from (time for box in panel.boxes for time in (box.since, box.time, box.retracted_at) if time is not None)
    yield from (time for line in panel.watermarks for time, _ in line.steps)


def boxes_of(panes: Iterable[tuple[float, Pane]], points: Sequence[Point], *, by_clock: bool) -> tuple[Box, ...]:
    """The panes of one key as boxes; retractions strike them out.

    Args:
        panes: each with its processing time, in order.
        points: the rows of the key.
        by_clock: whether processing time is a clock; otherwise a box has whole steps.
    """
    boxes: list[Box] = []
    for time, pane in panes:
        if pane.window is None or isinstance(pane.window, RowWindow):
            continue
        if pane.kind is PaneKind.PANE:
            start_us, end_us = bounds_us(pane)
            since = since_of(boxes, points, start_us, end_us, time)
            since = since if by_clock else float(min(math.floor(since), time - 1))
            boxes.append(Box(start_us, end_us, since, time, values_label(pane.values), pane))
        elif pane.kind is PaneKind.RETRACTION:
            _strike_out(boxes, time, pane)
    return tuple(boxes)


def bounds_us(pane: Pane) -> tuple[int, int]:
    """The bounds of a pane's window, microseconds since the epoch."""
    if pane.window is None or pane.window.start is None or isinstance(pane.window, RowWindow):
        return ALL_OF_TIME
    return instant_us("window", pane.start), instant_us("window", pane.end)


def since_of(boxes: Sequence[Box], points: Sequence[Point], start_us: int, end_us: int, time: float) -> float:
    """The start of a box at a time: the pane before, of this window or of those merged into it, or its first row."""
    before = [box.time for box in boxes if _grew_into(box, start_us, end_us)]
    if before:
        return max(before)
    inside = [
        point.time
        for point in points
        if point.event_us is not None and start_us <= point.event_us < end_us and (point.dropped is None or point.kept)
    ]
    return min(min(inside, default=time), time)


def _grew_into(box: Box, start_us: int, end_us: int) -> bool:
    """Whether a window is that of a box, or may have been merged from it; sliding windows overlap too, but have equal lengths."""
    if (box.start_us, box.end_us) == (start_us, end_us):
        return True
    overlap = box.start_us < end_us and start_us < box.end_us
    return overlap and box.end_us - box.start_us < end_us - start_us


def _strike_out(boxes: list[Box], time: float, retraction: Pane) -> None:
    for at in reversed(range(len(boxes))):
        box = boxes[at]
        same = box.pane.window == retraction.window and box.pane.index == retraction.index
        # NaN differs from itself, but its text does not.
        if same and box.retracted_at is None and repr(box.pane.values) == repr(retraction.values):
            boxes[at] = attrs.evolve(box, retracted_at=time)
            return


def judged(points: Sequence[Point], boxes: Sequence[Box]) -> tuple[Point, ...]:
    """The points, with lateness: the watermark had reached the end of the first window that contains them."""

    def is_late(point: Point) -> bool:
        stood_us, us = point.watermark_us, point.event_us
        if stood_us is None or us is None or point.is_pane:
            return False
        shows = [box for box in boxes if box.start_us <= us < box.end_us and box.since <= point.time <= box.time]
        return bool(shows) and stood_us >= min(shows, key=lambda box: box.time).end_us

    return tuple(attrs.evolve(point, late=is_late(point)) for point in points)


def values_label(values: Mapping[str, Any]) -> str:
    """The label of a pane with these values."""
    if len(values) == 1:
        return value_label(next(iter(values.values())))
    return "\n".join(f"{printable(name)} {value_label(value)}" for name, value in values.items())


def value_label(value: Any) -> str:
    """A value, shortened."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        if any(isinstance(one, Mapping) for one in value.values()):
            return "\n".join(f"{name} {value_label(one)}" for name, one in value.items())
        return _short(", ".join(map(value_label, value.values())))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return _short("[" + ", ".join(map(value_label, value)) + "]")
    return _short(str(value))


def _short(text: str, most: int = 16) -> str:
    text = printable(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def printable(text: str) -> str:
    """A text in one line, without characters that picture formats reject."""
    return "".join(letter if letter.isprintable() else "\N{MIDDLE DOT}" for letter in text)


MOST_PANELS = 12
"""Maximum number of panels: more would be unreadable."""


@attrs.frozen
class Chosen:
    """The requested keys.

    Attributes:
        key: key columns and their values; or the value of a single key column; None: all keys.
        columns: the key columns of each stage.
    """

    key: Any
    columns: Sequence[Sequence[Any]]

    def __attrs_post_init__(self) -> None:
        known = list(dict.fromkeys(str(name) for names in self.columns for name in names))
        if self.key is not None and not known:
            raise OptionError(f"timeline(key={self.key!r}): the pipeline has no keys; leave key= out")
        if isinstance(self.key, Mapping):
            for name in self.key:
                if name not in known:
                    raise OptionError(f"timeline(key={self.key!r}): there is no key column {name!r}; there are {known}")
        elif self.key is not None and any(len(names) > 1 for names in self.columns):
            raise OptionError(
                f"timeline(key={self.key!r}): there are several key columns; name them: key={{{known[0]!r}: {self.key!r}}}"
            )

    def keys(self, stage: int, seen: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """The keys of a stage to show, among those seen, in order of appearance."""
        return [key for key in dict.fromkeys(seen) if self._is_asked(stage, key)]

    def _is_asked(self, stage: int, key: tuple[Any, ...]) -> bool:
        if self.key is None or not key:
            return True
        if not isinstance(self.key, Mapping):
            return bool(key[0] == self.key)
        named = dict(zip(map(str, self.columns[stage]), key, strict=True))
        return all(named[name] == value for name, value in self.key.items() if name in named)

    def check(self, panels: Sequence[Panel]) -> None:
        """Check the number of panels (OptionError: no such key, or too many keys)."""
        if not panels:
            what = (
                "there are no rows and no panes" if self.key is None else f"no row and no pane has the key {self.key!r}"
            )
            raise OptionError(f"timeline(key={self.key!r}): {what}, so there is nothing to show")
        if len(panels) > MOST_PANELS:
            example = next(panel.key for panel in panels if panel.key)
            raise OptionError(
                f"timeline(): {len(panels)} keys, a panel each, are too many to read (at most {MOST_PANELS}); "
                f"pick one: key={dict(example)!r}"
            )


def key_of(values: Iterable[Any]) -> tuple[Any, ...]:
    """The values of a key, for lookups: normalised as in panes; unhashable values as text."""
    return tuple(map(_to_look_up, values))


def _to_look_up(value: Any) -> Any:
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0  # panes have 0.0 for both zeros
    return value if isinstance(value, Hashable) else repr(value)


def key_name(key: Mapping[str, Any]) -> str:
    """A key as text."""
    return ", ".join(f"{name} = {value}" for name, value in key.items())
