"""A picture drawn by matplotlib: the only file that knows it.

What is drawn of the picture is a mark: it has a name, by which a page finds it again (``page.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.errors import OptionError
from beamish.instants import END_OF_TIME_US
from beamish.pane import PaneTiming
from beamish.plot.colors import Colors
from beamish.plot.labels import Area, Places, wishes_beside, wishes_in
from beamish.plot.picture import Box, Panel, Picture, Point, Watermark
from beamish.plot.ticks import clock_label, step_axis, time_axis

try:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle
except ImportError as error:  # pragma: no cover - tested where it is not installed
    raise OptionError(f"a timeline is drawn by matplotlib, which cannot be imported ({error}): pip install 'beamish[plot]'") from error

TEXT, SMALL, NUMBER = 11, 9.5, 9
MOST_LABELS = 80
"""Of more rows none has its value written at it."""
_LOOKS: Mapping[PaneTiming, tuple[str, str, str]] = {  # its colour, its edge, its hatching
    PaneTiming.EARLY: ("early", (0, (3, 2)), ""),
    PaneTiming.ON_TIME: ("on_time", "solid", ""),
    PaneTiming.LATE: ("late", "solid", "////"),
    PaneTiming.UNKNOWN: ("muted", "solid", ""),
}  # type: ignore[dict-item]


@attrs.frozen
class Mark:
    """Something drawn.

    Attributes:
        kind: row, dropped, pane, value, strike, watermark or ideal.
        since: processing time from which it is there; None: always.
        begins: of a pane's box, when it begins to grow.
        until: of a pane's box, when it is taken back.
        words: what it is, for whoever points at it.
        facts: what else a page says of it.
    """

    kind: str
    since: float | None = None
    begins: float | None = None
    until: float | None = None
    words: str = ""
    facts: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Drawn:
    """A drawing, and where things are in it.

    Attributes:
        canvas: matplotlib's figure, 72 pixels to its inch.
        marks: by name.
        panels: of each panel left, bottom, right and top in pixels from the lower left.
        width, height: pixels.
        times: processing times at the bottom and the top of each panel.
    """

    canvas: Canvas
    marks: Mapping[str, Mark]
    panels: Sequence[Area]
    width: int
    height: int
    times: tuple[float, float]


@attrs.define
class _Drawing:
    picture: Picture
    colors: Colors
    width: int
    canvas: Canvas
    agg: FigureCanvasAgg
    marks: dict[str, Mark]

    @property
    def narrow(self) -> bool:
        return self.width < 500

    def mark(self, artist: Any, name: str, mark: Mark) -> None:
        artist.set_gid(name)
        self.marks[name] = mark

    def extent(self, text: Any) -> Area:
        """What a text with a ground of its own takes."""
        renderer = self.agg.get_renderer()
        text.update_bbox_position_size(renderer)
        extent = text.get_bbox_patch().get_window_extent(renderer)
        return Area(extent.x0, extent.y0, extent.x1, extent.y1)

    def when(self, time: float) -> str:
        return clock_label(time) if self.picture.by_clock else f"step {time:g}"


def draw(picture: Picture, colors: Colors, *, width: int = 720) -> Drawn:
    """Draw a picture so many pixels wide."""
    canvas = Canvas(dpi=72)
    canvas.patch.set_facecolor(colors.ground)
    drawing = _Drawing(picture, colors, width, canvas, FigureCanvasAgg(canvas), {})
    canvas.set_figwidth(width / 72)
    legend = _legend(drawing)
    legend_height = legend.get_window_extent(drawing.agg.get_renderer()).height
    named, count = any(panel.name for panel in picture.panels), len(picture.panels)
    each = (420 if count == 1 else 300 if count == 2 else 240) - (20 if drawing.narrow else 0)
    left, right, gap = (66, 12, 30) if drawing.narrow else (80, 18, 34)
    bottom, above = 48, 12 + (26 if picture.title else 0) + legend_height + 10 + (18 if named else 0)
    height = round(bottom + count * each + (count - 1) * gap + above)
    canvas.set_figheight(height / 72)
    areas = [
        Area(left, base, width - right, base + each)
        for base in (bottom + (count - 1 - number) * (each + gap) for number in range(count))
    ]
    y = height - 10
    if picture.title:
        canvas.text(12 / width, y / height, picture.title, size=14, weight="bold", color=colors.text, va="top")
        y -= 26
    legend.set_bbox_to_anchor((8 / width, (y + 2) / height), canvas.transFigure)
    times = _spread(picture.time_span, 0.06)
    for number, (panel, area) in enumerate(zip(picture.panels, areas, strict=True)):
        box = (area.left / width, area.bottom / height, (area.right - area.left) / width, each / height)
        _draw_panel(drawing, panel, number, canvas.add_axes(box), area, times, is_last=number == count - 1)
    return Drawn(canvas, drawing.marks, areas, width, height, times)


def _spread(span: tuple[float, float], by: float) -> tuple[float, float]:
    first, last = span
    more = (last - first) * by or 1
    return first - more, last + more


def _event_limits(picture: Picture) -> tuple[float, float]:
    return _spread(picture.event_span, 0.03)


def _draw_panel(
    drawing: _Drawing, panel: Panel, number: int, axes: Any, area: Area, times: tuple[float, float], *, is_last: bool
) -> None:
    colors, picture = drawing.colors, drawing.picture
    limits = _event_limits(picture)
    axes.set_xlim(*limits)
    axes.set_ylim(*times)
    _draw_axes(drawing, axes, area, limits, times, is_last=is_last)
    if panel.name:
        axes.set_title(panel.name, loc="left", fontsize=TEXT, color=colors.text, pad=5)
    if picture.ideal:
        (line,) = axes.plot(limits, limits, color=colors.muted, lw=1.2, ls=(0, (5, 4)), zorder=2)
        drawing.mark(line, f"{number}-ideal", Mark("ideal"))
    _draw_watermarks(drawing, panel, number, axes, limits, times)
    places = Places(area, [])
    circles = [_draw_point(drawing, axes, point, f"{number}-row-{i}", len(panel.points)) for i, point in enumerate(panel.points)]
    places.taken += [circle for circle in circles if circle is not None]
    for i, box in enumerate(panel.boxes):
        _draw_box(drawing, axes, box, f"{number}-pane-{i}", places, limits)
    for i, point in enumerate(panel.points):
        if point.dropped is not None:
            _draw_reason(drawing, axes, point, f"{number}-reason-{i}", places)


def _draw_axes(
    drawing: _Drawing, axes: Any, area: Area, limits: tuple[float, float], times: tuple[float, float], *, is_last: bool
) -> None:
    colors, picture = drawing.colors, drawing.picture
    across = time_axis(*limits, 4 if drawing.narrow else 8)
    most = max(3, int((area.top - area.bottom) / 45))
    up = time_axis(*times, most) if picture.by_clock else step_axis(*times, most)
    axes.set_facecolor(colors.ground)
    axes.set_xticks(across.ticks, across.labels if is_last else [""] * len(across.ticks))
    axes.set_yticks(up.ticks, up.labels)
    axes.tick_params(colors=colors.muted, labelsize=SMALL, length=0, pad=5)
    axes.grid(visible=True, color=colors.grid, lw=0.8, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(colors.muted)
    if is_last:
        axes.set_xlabel(", ".join(["event time", *([across.day] if across.day else [])]), color=colors.text, size=TEXT)
    axes.set_ylabel("processing time" if picture.by_clock else "step of the script", color=colors.text, size=TEXT)


def _draw_watermarks(
    drawing: _Drawing, panel: Panel, number: int, axes: Any, limits: tuple[float, float], times: tuple[float, float]
) -> None:
    for i, line in enumerate(panel.watermarks):
        xs, ys = _stairs(line, limits, times)
        if not xs:
            continue
        judges = line.name is None
        color = drawing.colors.watermark if judges else drawing.colors.inputs
        (drawn,) = axes.plot(xs, ys, color=color, lw=2 if judges else 1.4, ls=_style(panel, line), zorder=3, solid_joinstyle="miter")
        words = "watermark" if judges else f"watermark of {line.name}"
        drawing.mark(drawn, f"{number}-watermark-{i}", Mark("watermark", words=words))


def _style(panel: Panel, line: Watermark) -> Any:
    if line.name is None:
        return "solid"
    return [(0, (1, 1.4)), (0, (5, 1.6)), (0, (5, 1.6, 1, 1.6)), (0, (2, 1))][panel.watermarks.index(line) % 4]


def _stairs(line: Watermark, limits: tuple[float, float], times: tuple[float, float]) -> tuple[list[float], list[float]]:
    """The watermark as a line from the bottom to the top; it moves in steps, and leaves the panel where it is beyond it."""
    xs, ys = [], []
    before = limits[0]
    for time, us in line.steps:
        x = min(max(float(us), limits[0]), limits[1])
        xs += [before, x]
        ys += [time, time]
        before = x
    if xs:
        xs.append(before)
        ys.append(times[1])
    return xs, ys


def _draw_point(drawing: _Drawing, axes: Any, point: Point, name: str, of: int) -> Area | None:
    """Draw a row; gives what it takes of the panel."""
    colors = drawing.colors
    x = axes.get_xlim()[0] if point.event_us is None else point.event_us
    color = colors.dropped if point.dropped else colors.late if point.late else colors.text
    label = point.label if of <= MOST_LABELS else ""
    shape = "square" if point.is_pane else "circle" if len(label) <= 2 else "round"
    if label:
        padding = {"square": 0.3, "circle": 0.25, "round": 0.3}[shape]
        look = {"boxstyle": f"{shape},pad={padding}", "fc": colors.ground, "ec": color, "lw": 1.8 if point.late else 1.2}
        drawn = axes.text(
            x, point.time, label, size=NUMBER, color=color, ha="center", va="center", zorder=6, bbox=look, clip_on=False
        )
        drawn.get_bbox_patch().set_linestyle("dashed" if point.retracts else "solid")
        area = drawing.extent(drawn)
    else:
        (drawn,) = axes.plot([x], [point.time], "o", ms=5, mfc=color, mec=colors.ground, mew=0.8, zorder=6, clip_on=False)
        x_px, y_px = axes.transData.transform((x, point.time))
        area = Area.around(x_px, y_px, 6, 6)
    kind = "dropped" if point.dropped else "row"
    drawing.mark(drawn, name, Mark(kind, point.time, words=_point_words(drawing, point), facts={"label": point.label}))
    if point.dropped:
        size = max(area.right - area.left, area.top - area.bottom) / 2 + 2
        x_px, y_px = (area.left + area.right) / 2, (area.bottom + area.top) / 2
        ends = axes.transData.inverted().transform(
            [(x_px - size, y_px - size), (x_px + size, y_px + size), (x_px - size, y_px + size), (x_px + size, y_px - size)]
        )
        (cross,) = axes.plot(
            [ends[0][0], ends[1][0], float("nan"), ends[2][0], ends[3][0]],
            [ends[0][1], ends[1][1], float("nan"), ends[2][1], ends[3][1]],
            color=color, lw=1.6, zorder=7, clip_on=False,
        )
        drawing.mark(cross, f"{name}-cross", Mark("cross", point.time))
        area = Area.around(x_px, y_px, 2 * size, 2 * size)
    return area


def _point_words(drawing: _Drawing, point: Point) -> str:
    what = "retraction" if point.retracts else "pane" if point.is_pane else "row"
    words = f"{what} {point.label} of {point.input}" if point.input else f"{what} {point.label}"
    at = "without event time" if point.event_us is None else f"event time {clock_label(point.event_us)}"
    words = f"{words}: {at}, came at {drawing.when(point.time)}"
    return f"{words}; dropped: {point.dropped}" if point.dropped else f"{words}; late" if point.late else words


def _draw_box(drawing: _Drawing, axes: Any, box: Box, name: str, places: Places, limits: tuple[float, float]) -> None:
    colors = drawing.colors
    color_name, edge, hatch = _LOOKS[box.timing]
    color, gone = getattr(colors, color_name), box.retracted_at is not None
    left, right = max(float(box.start_us), limits[0]), min(float(box.end_us), limits[1])
    rectangle = Rectangle(
        (left, box.since), right - left, box.time - box.since, fc=(color, 0.05 if gone else 0.17), ec=color,
        lw=1.0 if gone else 1.5, ls=edge, hatch=hatch, zorder=1.5,
    )
    rectangle.set_hatch_linewidth(0.5)
    axes.add_patch(rectangle)
    words = _box_words(drawing, box)
    facts = {
        "timing": box.timing.value, "label": box.label, "start": _bound(box.start_us), "end": _bound(box.end_us),
        "index": str(box.pane.index),
    }
    drawing.mark(rectangle, name, Mark("pane", box.time, box.since, box.retracted_at, words, facts))
    corners = axes.transData.transform([(left, box.since), (right, box.time)])
    area = Area(corners[0][0], corners[0][1], corners[1][0], corners[1][1])
    look = {"boxstyle": "round,pad=0.18,rounding_size=0.4", "fc": (colors.ground, 0.85), "ec": "none"}
    label = axes.text(left, box.time, box.label, size=TEXT + 1, weight="bold", color=color, ha="center", va="center", zorder=8, bbox=look)
    extent = drawing.extent(label)
    x, y = places.place(extent.width, extent.height, wishes_in(area, extent.width, extent.height))
    at = axes.transData.inverted()
    label.set_position(at.transform((x, y)))
    drawing.mark(label, f"{name}-value", Mark("value", box.time, until=box.retracted_at, words=words, facts={"label": box.label}))
    if box.retracted_at is not None:
        half = extent.width / 2 + 1
        ends = at.transform([(x - half, y - 3), (x + half, y + 3)])
        (strike,) = axes.plot(ends[:, 0], ends[:, 1], color=color, lw=1.8, zorder=9)
        drawing.mark(strike, f"{name}-strike", Mark("strike", box.retracted_at))
        label.set_alpha(0.75)


def _bound(us: int) -> str:
    return "" if abs(us) == END_OF_TIME_US else str(us)


def _box_words(drawing: _Drawing, box: Box) -> str:
    known = abs(box.start_us) != END_OF_TIME_US
    window = f"[{clock_label(box.start_us)}, {clock_label(box.end_us)})" if known else "all of time"
    timing = box.timing.value.lower().replace("_", " ")
    values = box.label.replace("\n", ", ")
    words = f"{values}: {timing} pane {box.pane.index} of {window}, at {drawing.when(box.time)}"
    return words if box.retracted_at is None else f"{words}; retracted at {drawing.when(box.retracted_at)}"


def _draw_reason(drawing: _Drawing, axes: Any, point: Point, name: str, places: Places) -> None:
    x = axes.get_xlim()[0] if point.event_us is None else point.event_us
    text = f"dropped: {point.dropped}".replace("_", " ")
    drawn = axes.text(x, point.time, text, size=SMALL, color=drawing.colors.dropped, ha="center", va="center", zorder=9)
    drawn.set_bbox({"boxstyle": "round,pad=0.15", "fc": (drawing.colors.ground, 0.85), "ec": "none"})
    extent = drawing.extent(drawn)
    middle = axes.transData.transform((x, point.time))
    x_px, y_px = places.place(extent.width, extent.height, wishes_beside(*middle, extent.width, extent.height, 12))
    drawn.set_position(axes.transData.inverted().transform((x_px, y_px)))
    drawing.mark(drawn, name, Mark("reason", point.time))


def _legend(drawing: _Drawing) -> Any:
    """What the signs mean, of those that occur; in as many columns as fit."""
    handles = list(_handles(drawing))
    for columns in range(len(handles), 0, -1):
        legend = drawing.canvas.legend(
            handles=handles, loc="upper left", ncols=columns, frameon=False, fontsize=SMALL, labelcolor=drawing.colors.text,
            handlelength=1.9, columnspacing=1.3, handletextpad=0.5, borderaxespad=0, borderpad=0.2, labelspacing=0.4,
        )
        if columns == 1 or legend.get_window_extent(drawing.agg.get_renderer()).width <= drawing.width - 14:
            break
        legend.remove()
    return legend


def _handles(drawing: _Drawing) -> Iterator[Any]:
    colors, panels = drawing.colors, drawing.picture.panels
    points = [point for panel in panels for point in panel.points]
    boxes = [box for panel in panels for box in panel.boxes]

    def dot(label: str, color: str, marker: str = "o", **more: Any) -> Line2D:
        return Line2D([], [], ls="", marker=marker, ms=7, mfc=colors.ground, mec=color, label=label, **more)

    if any(not point.is_pane for point in points):
        yield dot("row", colors.text)
    if any(point.is_pane for point in points):
        yield dot("pane of the stage before", colors.text, "s")
    if any(point.late and not point.dropped for point in points):
        yield dot("late row", colors.late, mew=1.8)
    if any(point.dropped for point in points):
        yield Line2D([], [], ls="", marker="x", ms=7, mew=1.6, mec=colors.dropped, label="dropped row")
    for timing, (color_name, edge, hatch) in _LOOKS.items():
        if any(box.timing is timing for box in boxes):
            color = getattr(colors, color_name)
            words = f"{timing.value.lower().replace('_', ' ')} pane"
            patch = Patch(fc=(color, 0.17), ec=color, ls=edge, lw=1.4, hatch=hatch, label=words)
            patch.set_hatch_linewidth(0.5)
            yield patch
    if any(box.retracted_at is not None for box in boxes):
        yield Line2D([], [], ls="", marker="$\\mathdefault{0}\\!\\!\\!/$", ms=8, color=colors.muted, label="retracted")
    if any(line.steps for panel in panels for line in panel.watermarks if line.name is None):
        yield Line2D([], [], color=colors.watermark, lw=2, label="watermark")
    seen: set[str] = set()
    for panel in panels:
        for line in panel.watermarks:
            if line.name is not None and line.name not in seen:
                seen.add(line.name)
                yield Line2D([], [], color=colors.inputs, lw=1.4, ls=_style(panel, line), label=f"watermark of {line.name}")
    if drawing.picture.ideal:
        yield Line2D([], [], color=colors.muted, lw=1.2, ls=(0, (5, 4)), label="ideal")
