"""The supported event times: years 1 to 9999, the range of datetimes, calendars and Spark."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beamish.instants import EARLIEST_US, LATEST_US


def in_range(time_us: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which event times (int64, microseconds since the epoch) are supported."""
    inside: NDArray[np.bool_] = (time_us >= EARLIEST_US) & (time_us <= LATEST_US)
    return inside
