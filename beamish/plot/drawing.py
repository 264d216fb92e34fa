"""Drawing with matplotlib: panels, axes, and titles."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import attrs
import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from beamish.plot.colors import Colors
from beamish.plot.labels import Area, Places
from beamish.plot.legend import draw_legend
from beamish.plot.marks import SMALL, TEXT, Mark, Pen
from beamish.plot.picture import Picture, printable
from beamish.plot.ticks import Axis, step_axis, time_axis

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
        pen = Pen(panel, number, axes, agg, colors, picture.by_clock, fades, marks, Places(area, []))
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
