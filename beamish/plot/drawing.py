"""A picture drawn by matplotlib: its panels, their axes, the legend of the signs that occur; and as a page that plays.

A picture as an animated page: matplotlib's SVG, wide and narrow, with its marks exposed to a small script. matplotlib draws, ``player.js``
shows and hides, ``player.css`` has light and dark colours. The page is self-contained.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from io import BytesIO
from typing import Any
from xml.etree import ElementTree as ET

import attrs
import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.figure import Figure as Canvas
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from beamish.plot.colors import DARK, LIGHT, Colors
from beamish.plot.labels import Area, Axis, Places, step_axis, time_axis
from beamish.plot.marks import FAINT, FILL, IDEAL, LOOKS, OPEN, SMALL, TEXT, Mark, Pen, line_style
from beamish.plot.picture import Picture, printable

_LOOK = {
    "frameon": False,
    "fontsize": SMALL,
    "handlelength": 1.9,
    "columnspacing": 1.3,
    "handletextpad": 0.5,
    "borderaxespad": 0,
    "borderpad": 0.2,
    "labelspacing": 0.45,
}


def draw_legend(
    canvas: Figure, agg: FigureCanvasAgg, picture: Picture, colors: Colors, width: float
) -> tuple[Any, float]:
    """The legend, in as many columns as fit, and its height in pixels."""
    signs = list(_signs(picture, colors))
    for rows in range(1, len(signs) + 1):
        columns = math.ceil(len(signs) / rows)
        by_rows = [
            sign for column in range(columns) for sign in signs[column::columns]
        ]  # matplotlib fills columns first
        handles, labels = [handle for handle, _ in by_rows], [label for _, label in by_rows]
        legend = canvas.legend(
            handles, labels, loc="upper left", ncols=columns, labelcolor=colors.text,
            handler_map={tuple: HandlerTuple(ndivide=1)}, **_LOOK,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)  # a name is not a formula
        extent = legend.get_window_extent(agg.get_renderer())  # type: ignore[no-untyped-call]
        if columns == 1 or extent.width <= width:
            return legend, extent.height
        legend.remove()
    return None, 0


def _signs(picture: Picture, colors: Colors) -> Iterator[tuple[Any, str]]:
    points = [point for panel in picture.panels for point in panel.points]
    boxes = [box for panel in picture.panels for box in panel.boxes]

    def dot(color: str, marker: str = "o", width: float = 1.2) -> Line2D:
        return Line2D([], [], ls="", marker=marker, ms=7, mfc=colors.ground, mec=color, mew=width)

    of_sources = [point for point in points if not point.is_pane and (point.kept or not point.dropped)]
    if any(point.input is None and not point.late for point in of_sources):
        yield dot(colors.text), "row"
    for number, name in enumerate(picture.inputs):
        if any(point.input == name for point in of_sources):
            yield dot(colors.of_input(number)), printable(f"row of {name}")
        if any(point.input == name and point.is_pane for point in points):
            yield dot(colors.of_input(number), "s"), printable(f"pane of {name}")
    if any(point.is_pane and point.input is None and not point.is_output for point in points):
        yield dot(colors.text, "s"), "pane of the stage before"
    if any(point.is_output for point in points):
        yield dot(colors.text, "s"), "pane"
    if any(point.late and not point.dropped for point in points):
        yield dot(colors.late, width=2), "late row"
    if any(point.dropped and not point.kept for point in points):
        yield dot(colors.dropped, "x", 1.8), "dropped row"
    for timing, (color_name, edge, hatch) in LOOKS.items():
        if any(box.timing is timing for box in boxes):
            color = getattr(colors, color_name)
            filled = Patch(fc=(color, FILL), ec=color, ls=edge, lw=1.4)
            hatched = Patch(fc="none", ec=color, lw=0, hatch=hatch)
            hatched.set_hatch_linewidth(0.5)
            yield (filled, hatched) if hatch else filled, f"{timing.value.lower().replace('_', ' ')} pane"
    if any(panel.open_windows for panel in picture.panels):
        yield Patch(fc=(colors.muted, FAINT), ec=colors.muted, ls=OPEN, lw=1.2), "open window"
    if any(box.retracted_at is not None for box in boxes):
        digit = Line2D([], [], ls="", marker="$\\mathdefault{7}$", ms=8, mfc=colors.muted, mec=colors.muted, mew=0.4)
        yield (digit, Line2D([], [], ls="", marker=(2, 0, -65), ms=14, mec=colors.muted, mew=1.6)), "retracted"
    if any(line.name is None and line.steps for panel in picture.panels for line in panel.watermarks):
        yield Line2D([], [], color=colors.watermark, lw=2), "watermark"
    for number, name in enumerate(picture.inputs):
        dashed = Line2D([], [], color=colors.of_input(number), lw=1.4, ls=line_style(number))
        yield dashed, printable(f"watermark of {name}")
    if picture.ideal:
        yield Line2D([], [], color=colors.muted, lw=1.2, ls=IDEAL), "ideal"


NARROW = 500
"""Widths below this, in pixels, are treated as narrow."""


@attrs.frozen
class Drawn:
    """A drawing, and the positions in it.

    Attributes:
        canvas: matplotlib's figure, 72 pixels to its inch.
        marks: the drawn marks, by name.
        panels: the sides of each panel, in pixels from the lower left.
        width, height: pixels.
        times: processing times at the bottom and the top of each panel.
    """

    canvas: Canvas
    marks: Mapping[str, Mark]
    panels: Sequence[Area]
    width: int
    height: int
    times: tuple[float, float]

    def written(self, form: str, *, name: str = "timeline") -> bytes:
        """Render as ``png``, ``svg`` or ``pdf``, deterministically.

        Args:
            form: the format.
            name: id prefix in an SVG; must be unique on a page.
        """
        file = BytesIO()
        undated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
            self.canvas.savefig(file, format=form, dpi=144 if form == "png" else 72, metadata=undated)
        return file.getvalue()


def draw(picture: Picture, colors: Colors, *, width: int = 720, fades: bool = True) -> Drawn:
    """Draw a picture with a width in pixels; ``fades``: whether retracted panes are faint."""
    canvas = Canvas(dpi=72, figsize=(width / 72, 10))
    canvas.patch.set_facecolor(colors.ground)
    agg = FigureCanvasAgg(canvas)
    times, events = _with_margin(picture.time_span, 0.06), _with_margin(picture.event_span, 0.03)
    across, up = _axes(picture, events, times, width)
    title = textwrap.fill(printable(picture.title or ""), width // 9)
    title_height = 19 * len(title.splitlines()) + 7 if title else 0
    legend, legend_height = draw_legend(canvas, agg, picture, colors, width - 14)
    areas, height = _areas(picture, width, across, up, above=title_height + legend_height + 20)
    canvas.set_figheight(height / 72)
    canvas.text(
        12 / width, 1 - 10 / height, title, size=14, weight="bold", color=colors.text, va="top", parse_math=False
    )
    if legend is not None:
        legend.set_bbox_to_anchor((8 / width, 1 - (8 + title_height) / height), canvas.transFigure)
    marks: dict[str, Mark] = {}
    for number, (panel, area) in enumerate(zip(picture.panels, areas, strict=True)):
        sides = (area.left / width, area.bottom / height, area.width / width, area.height / height)
        axes: Any = canvas.add_axes(sides, xlim=events, ylim=times)
        _draw_axes(axes, across, up, colors, by_clock=picture.by_clock, is_last=panel is picture.panels[-1])
        if panel.name:
            axes.set_title(printable(panel.name), loc="left", fontsize=TEXT, color=colors.text, pad=5, parse_math=False)
        pen = Pen(panel, number, axes, agg, colors, picture, fades, marks, Places(area))
        pen.draw(ideal=picture.ideal)
    return Drawn(canvas, marks, areas, width, height, times)


def _with_margin(span: tuple[float, float], part: float) -> tuple[float, float]:
    first, last = span
    margin = (last - first) * part or 1
    return first - margin, last + margin


def _panel_height(picture: Picture) -> int:
    return {1: 400, 2: 290}.get(len(picture.panels), 230)


def _axes(picture: Picture, events: tuple[float, float], times: tuple[float, float], width: int) -> tuple[Axis, Axis]:
    """The axes of event time and processing time, with as many ticks as fit."""
    height = _panel_height(picture)
    up = time_axis(*times, height // 42) if picture.by_clock else step_axis(*times, height // 24)
    return time_axis(*events, min((width - 90) // 54, 9)), up


def _areas(picture: Picture, width: int, across: Axis, up: Axis, *, above: float) -> tuple[list[Area], int]:
    """The positions of the panels, stacked, and the total height, in pixels."""
    count, each, narrow = len(picture.panels), _panel_height(picture), width < NARROW
    letters = max((len(line) for label in up.labels for line in label.splitlines()), default=0)
    left = 30 + 6.5 * max(letters, 4) + (0 if narrow else 12)
    right, gap, bottom = 14 if narrow else 22, 32, 60 if any("\n" in label for label in across.labels) else 46
    named = 18 if any(panel.name for panel in picture.panels) else 0
    bases = [bottom + (count - 1 - number) * (each + gap) for number in range(count)]
    height = bottom + count * each + (count - 1) * gap + named + above
    return [Area(left, base, width - right, base + each) for base in bases], round(height)


def _draw_axes(axes: Any, across: Axis, up: Axis, colors: Colors, *, by_clock: bool, is_last: bool) -> None:
    axes.set_facecolor("none")
    axes.set_xticks(across.ticks, across.labels if is_last else [""] * len(across.ticks))
    axes.set_yticks(up.ticks, up.labels)
    axes.tick_params(colors=colors.muted, labelsize=SMALL, length=0, pad=5)
    axes.grid(visible=True, color=colors.grid, lw=0.8, zorder=0)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(colors.muted)
    if is_last:
        axes.set_xlabel(_with_day("event time", across.day), color=colors.text, size=TEXT)
    processing_time = _with_day("processing time", "" if up.day == across.day else up.day)
    axes.set_ylabel(processing_time if by_clock else "step of the script", color=colors.text, size=TEXT)


def _with_day(words: str, day: str) -> str:
    return f"{words}, {day}" if day else words


WIDTHS = {"wide": 720, "narrow": 360}
_SVG = "{http://www.w3.org/2000/svg}"
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_NAMES = {color: f"var(--{name}, {color})" for name, color in LIGHT.named.items()}


def library() -> str:
    """The style and script of all figures of a page, included once."""
    own = files("beamish.plot")
    day, night = ("".join(f"--{name}: {color};" for name, color in colors.named.items()) for colors in (LIGHT, DARK))
    css = (own / "player.css").read_text("utf-8").replace("/* day */", day).replace("/* night */", night)
    return f"<style>{css}</style><script>{(own / 'player.js').read_text('utf-8')}</script>"


def whole(picture: Picture) -> str:
    """A page of one figure."""
    title = escape(printable(picture.title or "Timeline"))
    return (
        '<!DOCTYPE html>\n<html lang="en" class="beamish-colors"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title>{library()}</head><body>{part(picture)}</body></html>\n"
    )


def part(picture: Picture) -> str:
    """A figure, for a page with the ``library``."""
    drawn = "".join(_svg(picture, name, width) for name, width in WIDTHS.items())
    return f'<figure class="beamish" data-clock="{str(picture.by_clock).lower()}">{drawn}</figure>'


def _svg(picture: Picture, name: str, width: int) -> str:
    """An SVG with the attributes of its marks, and its colours by name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser has more glyphs than matplotlib
        drawn = draw(picture, LIGHT, width=width, fades=False)
        whose = f"b{sha256(repr(picture).encode()).hexdigest()[:8]}-{name}"
        text = drawn.written("svg", name=whose).decode()
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", text)
    text = re.sub(r"font-family: [^;\"]*", f"font-family: {_FONTS}", text)
    text = re.sub("|".join(_NAMES), lambda found: _NAMES[found[0]], text)
    for prefix, uri in (("", _SVG[1:-1]), ("xlink", "http://www.w3.org/1999/xlink")):
        ET.register_namespace(prefix, uri)
    root = ET.fromstring(text)  # noqa: S314 - it is ours
    for metadata in root.findall(f"{_SVG}metadata"):
        root.remove(metadata)
    for group in root.iter(f"{_SVG}g"):
        mark = drawn.marks.get(group.get("id", ""))
        group.attrib.pop("id", None)
        if mark is not None:
            _tell(group, mark)
    root.attrib.update(_about(drawn, picture, whose, name))
    return ET.tostring(root, encoding="unicode")


def _tell(group: ET.Element, mark: Mark) -> None:
    """Add the attributes of a mark to its group."""
    times = {"since": mark.since, "begins": mark.begins, "until": mark.until}
    group.attrib.update({f"data-{name}": repr(time) for name, time in times.items() if time is not None})
    group.attrib.update({f"data-{name}": fact for name, fact in mark.facts.items() if fact})
    group.attrib.update({"data-kind": mark.kind, "data-panel": str(mark.panel)})
    if mark.until is not None:
        group.set("class", "gone")
    if mark.words:
        title = ET.Element(f"{_SVG}title")
        title.text = printable(mark.words)
        group.insert(0, title)


def _about(drawn: Drawn, picture: Picture, whose: str, name: str) -> dict[str, str]:
    """The attributes of an SVG: its panels, from the upper left, and the processing times at their ends."""
    panels = [
        [round(side, 2) for side in (area.left, drawn.height - area.top, area.right, drawn.height - area.bottom)]
        for area in drawn.panels
    ]
    return {
        "id": whose,
        "class": name,
        "width": str(drawn.width),
        "height": str(drawn.height),
        "role": "img",
        "aria-label": printable(picture.title or "") or "event time across, processing time up",
        "data-panels": json.dumps(panels),
        "data-times": json.dumps(drawn.times),
        "data-moments": json.dumps(picture.moments),
    }
