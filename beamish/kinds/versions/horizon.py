"""The watermark has passed a time by a span if the time plus the span is below it."""

from __future__ import annotations

from beamish.watermarks import NO_WATERMARK_US


def horizon_us(watermark_us: int, span_us: int) -> int:
    """The time below which the watermark has passed everything by a span, microseconds; before there is a watermark, nothing."""
    return max(watermark_us - span_us, NO_WATERMARK_US)
