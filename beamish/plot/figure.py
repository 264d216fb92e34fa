"""What ``bm.plot.timeline`` gives: a picture that can be saved and shown."""

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

    In a notebook it shows itself. ``picture`` is what it shows, as plain values.

    Attributes:
        picture: rows, watermarks and panes, a panel for each stage and key.
    """

    picture: Picture = attrs.field(repr=lambda picture: f"<{len(picture.panels)} panels>")

    def save(self, path: str | Path, *, dark: bool = False, width: int = 720) -> Path:
        """Write it to a file.

        Args:
            path: what it ends on says what it becomes: ``.html`` (it plays, on one page without network), ``.png``, ``.svg``, ``.pdf``.
            dark: light on dark; of a page the reader chooses.
            width: pixels, at least 300; a phone has some 360. A page brings a wide and a narrow one.

        Returns:
            the path.

        Raises:
            OptionError: it ends on something else; it is too narrow; or matplotlib is not installed.
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
        """One page that plays, without network; or a part of one.

        Args:
            library: False: what plays it, and its colours, are left out, for a page of several figures that has ``library()`` once.

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
    """What plays all figures of a page: a style and a script, for a page of several ``html(library=False)``.

    The page's ``<html>``, or what is around the figures, has the class ``beamish-colors``.

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
