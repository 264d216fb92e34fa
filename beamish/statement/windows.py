"""The windows of a statement, how late rows may come, how long results are asked to be kept."""

from __future__ import annotations

import attrs

from beamish.durations import Duration
from beamish.windows import GlobalWindow, WindowOption


@attrs.frozen
class Windows:
    """The WINDOW clause.

    Attributes:
        option: the windows.
        grace: how late rows may come; None: not set.
        retention: how long results are asked to be kept; None: not set.
    """

    option: WindowOption = GlobalWindow()
    grace: Duration | None = None
    retention: Duration | None = None
