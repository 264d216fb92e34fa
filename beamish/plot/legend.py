"""The legend of a picture, limited to the signs that occur in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from beamish.plot.colors import Colors
from beamish.plot.marks import FILL, IDEAL, LOOKS, SMALL, line_style
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

    if any(not point.is_pane and not point.late and (point.kept or not point.dropped) for point in points):
        yield dot(colors.text), "row"
    if any(point.is_pane for point in points):
        yield dot(colors.text, "s"), "pane of the stage before"
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
    if any(box.retracted_at is not None for box in boxes):
        number = Line2D([], [], ls="", marker="$\\mathdefault{7}$", ms=8, mfc=colors.muted, mec=colors.muted, mew=0.4)
        yield (number, Line2D([], [], ls="", marker=(2, 0, -65), ms=14, mec=colors.muted, mew=1.6)), "retracted"
    if any(line.name is None and line.steps for panel in picture.panels for line in panel.watermarks):
        yield Line2D([], [], color=colors.watermark, lw=2), "watermark"
    of_inputs = {line.name: (panel, line) for panel in picture.panels for line in panel.watermarks if line.name}
    for name, (panel, line) in of_inputs.items():
        yield Line2D([], [], color=colors.inputs, lw=1.4, ls=line_style(panel, line)), printable(f"watermark of {name}")
    if picture.ideal:
        yield Line2D([], [], color=colors.muted, lw=1.2, ls=IDEAL), "ideal"
