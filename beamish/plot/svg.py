"""A drawing as bytes of a file."""

from __future__ import annotations

from io import BytesIO

import matplotlib as mpl

from beamish.plot.drawing import Drawn


def written(drawn: Drawn, form: str, *, name: str = "timeline") -> bytes:
    """The drawing as ``png``, ``svg`` or ``pdf``; the same picture gives the same bytes.

    Args:
        name: of which the parts of an SVG are called; two on a page must differ.
    """
    file = BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[form]
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        drawn.canvas.savefig(file, format=form, dpi=144 if form == "png" else 72, metadata=undated)
    return file.getvalue()
