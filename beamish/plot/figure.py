"""The result of ``bm.plot.timeline``: a picture that can be saved and shown."""

from __future__ import annotations

from pathlib import Path

import attrs

from beamish.errors import OptionError
from beamish.plot.colors import DARK, LIGHT
from beamish.plot.picture import Picture

SUFFIXES = (".html", ".png", ".svg", ".pdf")


@attrs.frozen
class Figure:
    """A timeline.

    Shown as a picture in a notebook. ``picture`` has its content, as plain values.

    Attributes:
        picture: rows, watermarks and panes, a panel for each stage and key.
    """

    picture: Picture = attrs.field(repr=lambda picture: f"<{len(picture.panels)} panels>")

    def save(self, path: str | Path, *, dark: bool = False, width: int = 720) -> Path:
        """Write it to a file.

        Args:
            path: its suffix determines the format: ``.html`` (an animated page that needs no network), ``.png``, ``.svg``, ``.pdf``.
            dark: light on dark; a page follows the reader's setting.
            width: pixels, at least 300; a phone has some 360. A page contains a wide and a narrow picture.

        Returns:
            the path.

        Raises:
            OptionError: unknown suffix; too narrow; or matplotlib is not installed.
        """
        path = Path(path)
        if path.suffix not in SUFFIXES:
            raise OptionError(f"save({str(path)!r}): must end on {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
        if type(width) is not int or width < 300:
            raise OptionError(f"save(width={width!r}): must be a whole number of at least 300 pixels")
        if path.suffix == ".html":
            path.write_text(self.html(), encoding="utf-8")
            return path
        _check_matplotlib()
        from beamish.plot.drawing import draw

        drawn = draw(self.picture, DARK if dark else LIGHT, width=width)
        path.write_bytes(drawn.written(path.suffix[1:]))
        return path

    def html(self, *, library: bool = True) -> str:
        """An animated page that needs no network; or a part of one.

        Args:
            library: False: without script and colours, for a page of several figures that includes ``library()`` once.

        Raises:
            OptionError: matplotlib is not installed.
        """
        _check_matplotlib()
        from beamish.plot.page import part, whole

        return whole(self.picture) if library else part(self.picture)

    def _repr_html_(self) -> str:
        _check_matplotlib()
        from beamish.plot.page import library, part

        return f'<div class="beamish-colors">{library()}{part(self.picture)}</div>'


def library() -> str:
    """The style and script of figures, for a page of several ``html(library=False)``.

    The page's ``<html>``, or an element around the figures, needs the class ``beamish-colors``.

    Raises:
        OptionError: matplotlib is not installed.
    """
    _check_matplotlib()
    from beamish.plot.page import library

    return library()


def _check_matplotlib() -> None:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise OptionError(
            f"a timeline is drawn by matplotlib, which cannot be imported ({error}): pip install matplotlib (the extra 'plot')"
        ) from error
    del mpl
