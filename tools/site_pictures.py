"""The pictures of a page: drawn from a run of the blocks that stand on it.

A page asks for one by a comment below a block:

    <!-- picture: name pipeline script "Title" -->

``pipeline`` and ``script`` are expressions, without blanks, over what the blocks above have defined. The picture stands where the
comment is, or where the page has ``![...](.../pictures/name.svg)``.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import beamish as bm

PARTS = re.compile(r'^```python\n(.*?)^```$|^<!-- picture: (\S+) (\S+) (\S+) "(.*?)" -->$', re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r'^<!-- picture: (\S+) .*? "(.*?)" -->\n', re.MULTILINE)
WIDE, NARROW = 720, 360


def draw(page: str) -> dict[str, bm.plot.Figure]:
    """The pictures that a page asks for, by name; its blocks run, as far as the last of them."""
    parts = list(PARTS.finditer(page))
    while parts and not parts[-1][2]:
        parts.pop()
    names: dict[str, object] = {"__name__": "page"}
    drawn = {}
    for part in parts:
        if part[2]:
            pipeline, script = (eval(code, names) for code in (part[3], part[4]))
            drawn[part[2]] = bm.plot.timeline(pipeline, script, title=part[5])
        else:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(part[1], "page", "exec"), names)
    return drawn


def with_pictures(page: str, folder: Path, up: str = "") -> str:
    """The page with its pictures, light and dark, wide and narrow, which are put into the folder.

    Args:
        page: the text.
        folder: where they go.
        up: from the page to what holds the folder.
    """
    drawn = draw(page)
    folder.mkdir(exist_ok=True)
    for name, figure in drawn.items():
        for dark in (False, True):
            for width in (WIDE, NARROW):
                figure.save(folder / _file(name, dark, width), dark=dark, width=width)

    def images(name: str, words: str) -> str:
        lines = [
            f"![{words}]({up}{folder.name}/{_file(name, dark, width)}#only-{'dark' if dark else 'light'})"
            f"{{ .{'wide' if width == WIDE else 'narrow'} }}"
            for dark in (False, True)
            for width in (WIDE, NARROW)
        ]
        return "\n".join(lines)

    for name in drawn:
        shown = re.compile(rf"^!\[(.*?)\]\([\w./]*pictures/{re.escape(name)}\.svg\)$", re.MULTILINE)
        if shown.search(page):
            page = shown.sub(lambda found, name=name: images(name, found[1]), page)
            page = re.sub(rf"(?m)^<!-- picture: {re.escape(name)} .*-->\n+", "", page)
    return COMMENT.sub(lambda found: images(found[1], found[2]) + "\n", page)


def _file(name: str, dark: bool, width: int) -> str:
    return f"{name}{'-dark' * dark}{'-narrow' * (width == NARROW)}.svg"
