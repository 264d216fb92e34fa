"""Values and scripts as Python source."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import attrs

from beamish.instants import END_OF_TIME_US
from beamish.script import as_step
from beamish.testing.stream import TestStream

WIDEST = 76
"""Columns of a script on one line."""


def _in_utc(time: dt.datetime) -> str:
    return repr(time.astimezone(dt.UTC))


def as_python(value: Any, time: Callable[[dt.datetime], str] = _in_utc) -> str:
    """A value as the Python expression that makes it.

    Args:
        value: the value.
        time: writes aware datetimes.
    """

    def inner(one: Any) -> str:
        return as_python(one, time)

    match value:
        case TestStream():
            return _script(value)
        case Named():
            return value.name
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case list():
            return f"[{', '.join(map(inner, value))}]"
        case tuple():
            return f"({', '.join(map(inner, value))}{',' * (len(value) == 1)})"
        case dict():
            return f"{{{', '.join(f'{inner(key)}: {inner(one)}' for key, one in value.items())}}}"
        case dt.datetime() if value.tzinfo is not None:
            return time(value)
        case _:
            return repr(value)


@attrs.frozen
class Named:
    """An argument that a test names, such as its pipeline."""

    value: Any
    name: str


def _script(script: TestStream) -> str:
    calls = []
    for step in map(as_step, script.events):
        rows, of = as_python(list(step.rows)), [f"input={step.input!r}"] * (step.input is not None)
        watermark, clock = _seconds(step.watermark_us), _seconds(step.clock_us)
        if step.watermark_us is None and step.clock_us is None:
            calls.append(("add", [rows, *of]))
        elif step.rows or None not in (step.watermark_us, step.clock_us):
            given = {"watermark": watermark, "clock": clock}
            moves = [f"{name}={text}" for name, text in given.items() if text]
            calls.append(("step", [rows, *moves, *of]))
        elif step.watermark_us == END_OF_TIME_US:
            calls.append(("advance_watermark_to_infinity", of))
        elif step.watermark_us is not None:
            calls.append(("advance_watermark_to", [watermark, *of]))
        else:
            calls.append(("advance_processing_time_to", [clock]))
    chain = ["TestStream()", *(f".{name}({', '.join(given)})" for name, given in calls)]
    return text if len(text := "".join(chain)) <= WIDEST else "\n".join(["(", *(f"    {call}" for call in chain), ")"])


def _seconds(us: int | None) -> str:
    if us == END_OF_TIME_US:
        return 'float("inf")'
    if us is None:
        return ""
    return str(us // 1_000_000) if us % 1_000_000 == 0 else repr(us / 1_000_000)
