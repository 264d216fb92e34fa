"""The twin of a stage of windows: of time, or of rows."""

from __future__ import annotations

from typing import Any

from beamish.flow import Flow
from tests.kinds.window.twin_of_rows import CountedTwin
from tests.twin.run import Twin, numbering_of


def of_windows(flow: Flow) -> Any:
    """The twin of windows of time, or of rows."""
    return Twin(flow) if numbering_of(flow) is None else CountedTwin(flow)


TWIN = of_windows
