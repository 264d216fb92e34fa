"""A picture as an animated page: matplotlib's SVG, wide and narrow, with its marks exposed to a small script.

matplotlib draws, ``player.js`` shows and hides, ``player.css`` has light and dark colours. The page is self-contained.
"""

from __future__ import annotations

import json
import re
import warnings
from hashlib import sha256
from html import escape
from importlib.resources import files
from xml.etree import ElementTree as ET

from beamish.plot.colors import DARK, LIGHT
from beamish.plot.drawing import Drawn, draw
from beamish.plot.marks import Mark
from beamish.plot.picture import Picture, printable

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
    told = {"since": mark.since, "begins": mark.begins, "until": mark.until}
    group.attrib.update({f"data-{name}": repr(time) for name, time in told.items() if time is not None})
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
