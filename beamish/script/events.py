"""The events of a test script: rows, and moves of the watermark and the clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

Row = Mapping[str, Any]


@attrs.frozen
class Bundle:
    """Rows that come together; of a merge, those of one input."""

    rows: tuple[Row, ...]
    input: str | None = None


@attrs.frozen
class WatermarkTo:
    """The watermark advances to ``us``, microseconds since the epoch; END_OF_TIME_US is the end of time.

    Of a merge, that of one input, or (None) those of all.
    """

    us: int
    input: str | None = None


@attrs.frozen
class ClockTo:
    """The processing-time clock, which begins at 0, advances to ``us``."""

    us: int


Event = Bundle | WatermarkTo | ClockTo
