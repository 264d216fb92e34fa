"""The events of a test script: rows, watermark and clock updates, and whole steps of all three."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.instants import instant_in_words

Row = Mapping[str, Any]


@attrs.frozen
class Bundle:
    """Rows that arrive together; in a merge, those of one input."""

    rows: tuple[Row, ...]
    input: str | None = None


@attrs.frozen
class WatermarkTo:
    """The watermark advances to ``us``, microseconds since the epoch; END_OF_TIME_US is the end of time.

    In a merge, that of one input, or (None) those of all.
    """

    us: int
    input: str | None = None


@attrs.frozen
class ClockTo:
    """The processing-time clock, which begins at 0, advances to ``us``."""

    us: int


@attrs.frozen
class Step:
    """One micro-batch: the watermark advances, then the clock, then rows arrive. The other events are steps with one of these parts.

    Attributes:
        rows: as in ``Bundle``; empty: no rows.
        input: in a merge, the input of the rows and the watermark; None: the watermarks of all, and no rows.
        watermark_us: as in ``WatermarkTo``; None: unchanged.
        clock_us: as in ``ClockTo``; None: unchanged.
    """

    rows: tuple[Row, ...] = ()
    input: str | None = None
    watermark_us: int | None = None
    clock_us: int | None = None


Event = Bundle | WatermarkTo | ClockTo | Step


def as_step(event: Event) -> Step:
    """An event as a step."""
    match event:
        case Bundle(rows, of):
            return Step(rows, of)
        case WatermarkTo(us, of):
            return Step(input=of, watermark_us=us)
        case ClockTo(us):
            return Step(clock_us=us)
        case Step():
            return event


def in_words(event: Event) -> str:
    """The call that created an event, for messages."""
    match event:
        case Bundle():
            return "add(rows)"
        case WatermarkTo(us):
            return f"advance_watermark_to({us / 1e6})"
        case ClockTo(us):
            return f"advance_processing_time_to({us / 1e6})"
        case Step(watermark_us=us):
            return "step(rows)" if us is None else f"step(watermark={us / 1e6})"


def shown(event: Event) -> str:
    """An event in words, for traces."""
    step = as_step(event)
    words = [] if step.watermark_us is None else [f"watermark: {instant_in_words(step.watermark_us)}"]
    words += [] if step.clock_us is None else [f"clock: {instant_in_words(step.clock_us)}"]
    words += [str(dict(row)) for row in step.rows]
    return ", ".join(filter(None, [step.input and f"{step.input}:", *words])) or "nothing"
