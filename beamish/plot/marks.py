"""The marks of a panel: rows, watermarks and panes, identified so that a page can find them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import attrs
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Rectangle

from beamish.instants import END_OF_TIME_US
from beamish.pane import PaneTiming
from beamish.plot.colors import Colors
from beamish.plot.labels import Area, Places, clock_label, wishes_beside, wishes_in, wishes_out
from beamish.plot.picture import Box, OpenWindow, Panel, Picture, Point, Watermark

TEXT, SMALL, NUMBER = 12, 10.5, 9.5
MOST_LABELS = 80
"""Above this many rows, values are not labelled, and rows are small."""
MOST_PANES = 40
"""Above this many panes, a label is inside its own box, or omitted."""
LEAST_LABEL = (14, 12)
"""Minimum width and height of a labelled box in a crowded panel, in pixels."""
SPILL = 1.25
"""A label may be this much wider than its box, if it covers no other."""
LEAST_HEIGHT = 7
"""Minimum height of a box, in pixels."""
FILL, FAINT = 0.17, 0.06
LOOKS: Mapping[PaneTiming, tuple[str, Any, str]] = {  # colour of a box, its edge, its hatching
    PaneTiming.EARLY: ("early", (0, (3, 2)), ""),
    PaneTiming.ON_TIME: ("on_time", "solid", ""),
    PaneTiming.LATE: ("late", "solid", "////"),
    PaneTiming.UNKNOWN: ("muted", "solid", ""),
}
IDEAL, OPEN = (0, (5, 4)), (0, (1, 2))
_DASHES = [(0, (1, 1.4)), (0, (5, 1.6)), (0, (5, 1.6, 1, 1.6)), (0, (2, 1))]


@attrs.frozen
class Mark:
    """A drawn mark.

    Attributes:
        kind: row, dropped, reason, pane, ground, hatch, value, strike, open, so-far, watermark or ideal.
        panel: the number of its panel.
        since: processing time from which it is shown; None: always.
        begins: of a pane's box, when it begins to grow.
        until: of a pane, when it is retracted.
        words: its tooltip.
        facts: further attributes on a page.
    """

    kind: str
    panel: int
    since: float | None = None
    begins: float | None = None
    until: float | None = None
    words: str = ""
    facts: Mapping[str, str] = attrs.field(factory=dict)


@attrs.define(slots=False)
class Pen:
    """Draws one panel.

    Attributes:
        panel, number: the panel, and its number.
        axes: matplotlib's axes, with their limits.
        agg: measures text.
        colors: the colours.
        picture: that of the panel.
        fades: whether retracted panes are drawn faint; an animated page does that itself.
        marks: the drawn marks, by name.
        places: the occupied areas.
    """

    panel: Panel
    number: int
    axes: Any
    agg: FigureCanvasAgg
    colors: Colors
    picture: Picture
    fades: bool
    marks: dict[str, Mark]
    places: Places

    def draw(self, *, ideal: bool) -> None:
        """Draw the panel."""
        if ideal:
            limits = self.axes.get_xlim()
            (line,) = self.axes.plot(limits, limits, color=self.colors.muted, lw=1.2, ls=IDEAL, zorder=2)
            self._mark(line, "ideal", Mark("ideal", self.number))
        for i, watermark in enumerate(self.panel.watermarks):
            self._watermark(watermark, f"watermark-{i}")
        for i, point in enumerate(self.panel.points):
            area = self._point(point, f"row-{i}")
            if not self._is_crowded:
                self.places.rows.append(area)
        for i, window in enumerate(self.panel.open_windows):
            self._open(window, f"open-{i}")
        boxes = list(enumerate(self.panel.boxes))
        for i, box in boxes:
            self._box(i, box, f"pane-{i}")
        boxes.sort(key=lambda one: one[1].retracted_at is not None)  # live panes come first
        for i, box in boxes:
            self._value(i, box, f"pane-{i}")
        for i, window in enumerate(self.panel.open_windows):
            self._so_far(i, window, f"open-{i}-so-far")
        for i, point in enumerate(self.panel.points):
            if point.dropped is not None:
                self._reason(point, f"reason-{i}")

    @property
    def _is_crowded(self) -> bool:
        return len(self.panel.points) > MOST_LABELS

    def _mark(self, artist: Any, name: str, mark: Mark) -> None:
        name = f"{self.number}-{name}"
        artist.set_gid(name)
        self.marks[name] = mark

    def _when(self, time: float) -> str:
        return clock_label(time) if self.picture.by_clock else f"step {time:g}"

    def _text(self, x: float, y: float, words: str, **look: Any) -> Any:
        """A text with this middle, literally: a dollar is not a formula."""
        return self.axes.text(x, y, words, ha="center", va="center", parse_math=False, **look)

    def _extent(self, text: Any) -> Area:
        """The rectangle of a text with its background."""
        renderer = self.agg.get_renderer()  # type: ignore[no-untyped-call]
        text.update_bbox_position_size(renderer)
        extent = text.get_bbox_patch().get_window_extent(renderer)
        return Area(extent.x0, extent.y0, extent.x1, extent.y1)

    def _watermark(self, watermark: Watermark, name: str) -> None:
        """A step line from bottom to top; a watermark beyond the panel is drawn at its side."""
        first, last = self.axes.get_xlim()
        xs: list[float] = [first]
        ys: list[float] = []
        for time, us in watermark.steps:
            ys += [time, time]
            xs += [min(max(float(us), first), last)] * 2
        if not ys:
            return
        ys.append(self.axes.get_ylim()[1])
        look: dict[str, Any] = {"color": self.colors.watermark, "lw": 2.2, "ls": "solid", "zorder": 3}
        if watermark.name is not None:
            number = self.picture.inputs.index(watermark.name)
            look = {"color": self.colors.of_input(number), "lw": 1.4, "ls": line_style(number), "zorder": 3.5}
        (line,) = self.axes.plot(xs, ys, solid_joinstyle="miter", **look)
        words = "watermark" if watermark.name is None else f"watermark of {watermark.name}"
        self._mark(line, name, Mark("watermark", self.number, words=words))

    def _point(self, point: Point, name: str) -> Area:
        """Draw a row; returns its rectangle."""
        label = "" if self._is_crowded else point.label
        if point.dropped is not None and not point.kept:
            artist, area = self._sign(point, "x", 9)
        elif label and (numbered := self._number(point, label)) is not None:
            artist, area = numbered
        else:
            artist, area = self._sign(point, "s" if point.is_pane else "o", 4 if self._is_crowded else 6)
        kind = "row" if point.dropped is None or point.kept else "dropped"
        facts = {"label": point.label, "reason": str(point.dropped or "")}
        self._mark(artist, name, Mark(kind, self.number, point.time, words=self._point_words(point), facts=facts))
        return area

    def _x(self, point: Point) -> float:
        """Draw a row without event time at the side."""
        return float(self.axes.get_xlim()[0] if point.event_us is None else point.event_us)

    def _color(self, point: Point) -> str:
        """The colour of its edge."""
        return self.colors.dropped if point.dropped else self.colors.late if point.late else self._ink(point)

    def _ink(self, point: Point) -> str:
        """The colour of its value."""
        if point.input is not None:
            return self.colors.of_input(self.picture.inputs.index(point.input))
        return self.colors.dropped if point.dropped else self.colors.late if point.late else self.colors.text

    def _sign(self, point: Point, marker: str, size: float) -> tuple[Any, Area]:
        x, color, ink = self._x(point), self._color(point), self._ink(point)
        edge = color if marker == "x" or color != ink else self.colors.ground
        width = 1.8 if marker == "x" else 0.3 if self._is_crowded else 0.8
        (artist,) = self.axes.plot(
            [x], [point.time], marker, ms=size, mfc=ink, mec=edge, mew=width, zorder=6, clip_on=False
        )
        middle = self.axes.transData.transform((x, point.time))
        return artist, Area.around(middle[0], middle[1], size + 2, size + 2)

    def _number(self, point: Point, label: str) -> tuple[Any, Area] | None:
        """Draw the value of a row at its position, or beside it if that is occupied; None: it would cover a part of another label."""
        color = self._color(point)
        shape = "square" if point.is_pane else "circle" if len(label) <= 2 else "round"
        ground = {
            "boxstyle": f"{shape},pad={0.25 if shape == 'circle' else 0.3}",
            "fc": self.colors.ground,
            "ec": color,
            "lw": 2 if point.late else 1.2,
            "ls": "dashed" if point.retracts else "solid",
        }
        ink = self._ink(point)
        artist = self._text(self._x(point), point.time, label, size=NUMBER, color=ink, zorder=6, bbox=ground)
        area, there = self._extent(artist), self.axes.transData
        half = area.width * area.height / 2
        while covered := [other.right for other in self.places.rows if area.shared(other) > half]:
            x, y = max(covered) + area.width / 2, (area.bottom + area.top) / 2
            artist.set_position(there.inverted().transform((x, y)))
            area = self._extent(artist)
        if any(area.shared(other) > half / 5 for other in self.places.rows):
            artist.remove()
            return None
        return artist, area

    def _point_words(self, point: Point) -> str:
        what = "retraction" if point.retracts else "pane" if point.is_pane else "row"
        words = " ".join(
            [what, *([point.label] if point.label else []), *([f"of {point.input}"] if point.input else [])]
        )
        at = "without event time" if point.event_us is None else f"event time {clock_label(point.event_us)}"
        fate = f"; dropped: {point.dropped}" if point.dropped else "; late" if point.late else ""
        return f"{words}: {at}, came at {self._when(point.time)}{fate}"

    def _box(self, number: int, box: Box, name: str) -> None:
        color_name, edge, hatch = LOOKS[box.timing]
        color, faint = getattr(self.colors, color_name), self.fades and box.retracted_at is not None
        left, right = self._sides(box)
        bottom, top = self._heights[number]
        at, size = (left, bottom), (right - left, top - bottom)
        if (bottom, top) != (box.since, box.time):  # it covers a part of another
            ground = self.axes.add_patch(Rectangle(at, *size, fc=self.colors.ground, ec="none", zorder=1.5))
            self._mark(ground, f"{name}-ground", Mark("ground", self.number, box.time, box.since))
        look = {"ec": color, "lw": 1.0 if faint else 1.4, "ls": edge, "zorder": 1.5}
        rectangle = self.axes.add_patch(Rectangle(at, *size, fc=(color, FAINT if faint else FILL), **look))
        words = self._box_words(box)
        facts = {"timing": box.timing.value, "label": box.label, "index": str(box.pane.index), **_bounds(box)}
        mark = Mark("pane", self.number, box.time, box.since, box.retracted_at, words, facts)
        self._mark(rectangle, name, mark)
        if hatch:  # a patch of its own, since SVG has one opacity for fill and edge
            hatched = Rectangle(
                at, *size, fc="none", ec=color, lw=0, hatch=hatch, alpha=0.4 if faint else 1, zorder=1.6
            )
            hatched.set_hatch_linewidth(0.5)
            self._mark(
                self.axes.add_patch(hatched), f"{name}-hatch", attrs.evolve(mark, kind="hatch", words="", facts={})
            )

    @cached_property
    def _heights(self) -> list[tuple[float, float]]:
        """The bottom and the top of each box; a flat one has a least height, below the next one of the same time."""
        first, last = self.axes.get_ylim()
        least = LEAST_HEIGHT * (last - first) / self.axes.bbox.height
        heights: dict[int, tuple[float, float]] = {}
        for number, box in reversed(list(enumerate(self.panel.boxes))):
            if box.time - box.since >= least:
                heights[number] = box.since, box.time
                continue
            above = [
                heights[other][0]
                for other in heights
                if self.panel.boxes[other].time == box.time and _overlap(self.panel.boxes[other], box)
            ]
            top = min([box.time, *above])
            heights[number] = top - least, top
        return [heights[number] for number in range(len(heights))]

    def _open(self, window: OpenWindow, name: str) -> None:
        """Draw an open window, out of the panel at its top."""
        (left, right), beyond = self._sides(window), self.axes.get_ylim()
        size = right - left, 2 * beyond[1] - beyond[0] - window.since
        look: dict[str, Any] = {
            "fc": (self.colors.muted, FAINT),
            "ec": self.colors.muted,
            "ls": OPEN,
            "lw": 1.2,
            "zorder": 1.4,
        }
        rectangle = self.axes.add_patch(Rectangle((left, window.since), *size, **look))
        mark = Mark("open", self.number, window.since, words=self._open_words(window), facts=_bounds(window))
        self._mark(rectangle, name, mark)

    def _so_far(self, number: int, window: OpenWindow, name: str) -> None:
        """Draw the values that an open window would emit, where they fit."""
        own, ends_at = self._open_areas[number], max(self.picture.moments)
        others = [*self._areas, *self._open_areas[:number], *self._open_areas[number + 1 :]]
        for words in shortened(window.label) if window.label else ():
            text = self._value_text(self._sides(window)[0], window.since, words, self.colors.muted)
            extent = self._extent(text)
            wishes = wishes_in(own, extent, is_lowest=False)
            place = self.places.place(extent, wishes, most_covered=0.15, beside=others)
            if place is not None:
                text.set_position(self.axes.transData.inverted().transform(place))
                self._mark(text, name, Mark("so-far", self.number, ends_at, words=self._open_words(window)))
                return
            text.remove()

    def _open_words(self, window: OpenWindow) -> str:
        so_far = f"; a pane would have {window.label}".replace("\n", ", ") if window.label else ""
        return f"open window {_window_words(window)}{so_far}"

    @cached_property
    def _open_areas(self) -> list[Area]:
        """The position of each open window in the panel, in pixels."""
        top = self.axes.get_ylim()[1]
        return [self._area(window, window.since, top) for window in self.panel.open_windows]

    def _value(self, number: int, box: Box, name: str) -> None:
        """Draw as many values of a pane as fit, struck out if it is retracted; the rest is in the tooltip (``words`` of its box)."""
        color, gone = getattr(self.colors, LOOKS[box.timing][0]), box.retracted_at is not None
        fitting = self._fitting(number, box, color)
        if fitting is None:
            return
        text, extent, (x, y) = fitting
        there = self.axes.transData.inverted()
        text.set_position(there.transform((x, y)))
        mark = Mark("value", self.number, box.time, until=box.retracted_at, words=self._box_words(box))
        self._mark(text, f"{name}-value", mark)
        if gone:
            half, rise = extent.width / 2, max(extent.height / 2 - 6, 3)
            ends = there.transform([(x - half, y - rise), (x + half, y + rise)])
            (strike,) = self.axes.plot(ends[:, 0], ends[:, 1], color=color, lw=1.8, zorder=9)
            self._mark(strike, f"{name}-strike", Mark("strike", self.number, box.retracted_at))

    def _fitting(self, number: int, box: Box, color: str) -> tuple[Any, Area, tuple[float, float]] | None:
        """The label of a pane with the most values that fit: text, size and middle; None: none fits."""
        own, others = self._areas[number], [*self._areas[:number], *self._areas[number + 1 :]]
        is_last, is_small = number == len(self._areas) - 1, own.width < LEAST_LABEL[0] or own.height < LEAST_LABEL[1]
        crowded = len(self._areas) > MOST_PANES and not is_last
        if crowded and is_small:
            return None
        least = len(self._areas) > MOST_PANES and is_small  # the last pane is always labelled
        for words in [*shortened(box.label)][-1 if least else 0 :]:
            text = self._value_text(self._sides(box)[0], box.time, words, color)
            extent = self._extent(text)
            wishes = wishes_in(own, extent, is_lowest=self._is_lowest(box))
            short = "\n" not in words and not crowded
            fits = extent.width <= SPILL * own.width and extent.height <= own.height
            if short or fits or (own.height < LEAST_LABEL[1] and not crowded):  # a flat box has its label beside it
                place = self.places.place(extent, wishes, most_covered=0.15, beside=() if short else others)
                if place is None:
                    beyond = [*others, *self._open_areas]
                    place = self.places.place(extent, wishes_out(own, extent), most_covered=0.15, beside=beyond)
                if place is not None:
                    return text, extent, place
            text.remove()
        return None

    def _value_text(self, x: float, y: float, words: str, color: str) -> Any:
        ground = {"boxstyle": "round,pad=0.18,rounding_size=0.4", "fc": (self.colors.ground, 0.85), "ec": "none"}
        look = {"size": TEXT + 1, "weight": "bold", "color": color, "zorder": 8, "bbox": ground}
        return self._text(x, y, words, **look)

    @cached_property
    def _areas(self) -> list[Area]:
        """The position of each box, in pixels."""
        return [self._area(box, *heights) for box, heights in zip(self.panel.boxes, self._heights, strict=True)]

    def _area(self, window: Box | OpenWindow, bottom: float, top: float) -> Area:
        left, right = self._sides(window)
        corners = self.axes.transData.transform([(left, bottom), (right, top)])
        return Area(*corners[0], *corners[1])

    def _sides(self, box: Box | OpenWindow) -> tuple[float, float]:
        """The start and end of a window in the panel."""
        first, last = self.axes.get_xlim()
        return max(float(box.start_us), first), min(float(box.end_us), last)

    def _is_lowest(self, box: Box) -> bool:
        """Whether there is no other box right below it."""
        return not any(
            other is not box and other.time <= box.since and _overlap(other, box) for other in self.panel.boxes
        )

    def _box_words(self, box: Box) -> str:
        window, values, timing = (
            _window_words(box),
            box.label.replace("\n", ", "),
            box.timing.value.lower().replace("_", " "),
        )
        words = f"{values}: {timing} pane {box.pane.index} of {window}, at {self._when(box.time)}"
        return words if box.retracted_at is None else f"{words}; retracted at {self._when(box.retracted_at)}"

    def _reason(self, point: Point, name: str) -> None:
        """Draw a drop reason beside its row."""
        x = self._x(point)
        words = "dropped from a window" if point.kept else f"{point.label} dropped".strip()
        words = f"{words}: {point.dropped}".replace("_", " ")
        ground = {"boxstyle": "round,pad=0.15", "fc": (self.colors.ground, 0.85), "ec": "none"}
        text = self._text(x, point.time, words, size=SMALL, color=self.colors.dropped, zorder=9, bbox=ground)
        extent, there = self._extent(text), self.axes.transData
        middle = there.transform((x, point.time))
        place = self.places.place(extent, wishes_beside(middle[0], middle[1], extent, gap=9))
        if place is None:
            text.remove()
            return
        text.set_position(there.inverted().transform(place))
        self._mark(text, name, Mark("reason", self.number, point.time))


def shortened(label: str) -> Iterator[str]:
    """A label with all its values, one per line, then with fewer and fewer."""
    lines = label.split("\n")
    yield label
    for most in range(len(lines) - 1, 0, -1):
        yield "\n".join(lines[:most]) + " …"


def line_style(number: int) -> Any:
    """The style of the watermark of an input, from 0."""
    return _DASHES[number % len(_DASHES)]


def _overlap(one: Box, other: Box) -> bool:
    return one.start_us < other.end_us and other.start_us < one.end_us


def _window_words(box: Box | OpenWindow) -> str:
    if abs(box.start_us) == END_OF_TIME_US:
        return "all of time"
    return f"[{clock_label(box.start_us)}, {clock_label(box.end_us)})"


def _bounds(box: Box | OpenWindow) -> dict[str, str]:
    if abs(box.start_us) == END_OF_TIME_US:
        return {}
    return {"start": str(box.start_us), "end": str(box.end_us)}
