"""What the watermark is past: a time is past by a span if the time plus the span is below the watermark."""

from __future__ import annotations

from beamish.watermarks import NO_WATERMARK_US


def horizon_us(watermark_us: int, span_us: int) -> int:
    """The time below which all is past by a span, microseconds; before there is a watermark nothing is."""
    return max(watermark_us - span_us, NO_WATERMARK_US)
