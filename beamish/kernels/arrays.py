"""Type names for numpy arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
"""Whole numbers, times in microseconds among them."""
Flags = NDArray[np.bool_]
Doubles = NDArray[np.float64]


NO_VALUE = np.iinfo(np.int64).min
"""No value: no timestamp, no lateness, no segment."""


NO_ENTRY = -1
"""No index."""
