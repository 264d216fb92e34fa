"""Pictures of pipelines at work: rows, watermarks, windows and panes, event time across and processing time up.

Drawing needs matplotlib (the extra ``plot``). It is imported when something is drawn.
"""

from beamish.plot.picture import Box, Panel, Picture, Point, Watermark
from beamish.plot.timeline import Figure, library, timeline

__all__ = ["Box", "Figure", "Panel", "Picture", "Point", "Watermark", "library", "timeline"]


def __dir__() -> list[str]:
    return list(__all__)
