"""Read transcripts: see README.md beside this file."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import pyarrow.compute as pc

import beamish as bm
from beamish import accumulations, triggers
from beamish.instants import instant
from beamish.testing import TestStream
from tests.public_names import public_names

HERE = Path(__file__).parent
WHOLE = ("merge(", "as_of_join(", "table_join(", "Pipeline()")
"""How a pipeline begins that says itself what it takes."""


@attrs.frozen
class Step:
    """A line of the script, and the lines it gives."""

    line: str
    gives: tuple[str, ...]


@attrs.frozen
class Transcript:
    """A case: what is true, a pipeline in words, a script with what each line gives."""

    file: str
    title: str
    pipeline: str
    refused: str | None
    steps: tuple[Step, ...]

    def build(self) -> bm.Pipeline:
        """The pipeline."""
        names: dict[str, Any] = {**public_names(bm, triggers, accumulations), "bm": bm, "pc": pc}
        beginning = 'bm.Pipeline().event_time("ts", BoundedOutOfOrderness(0))'
        return eval(f"({'' if self.pipeline.startswith(WHOLE) else beginning}\n{self.pipeline})", names)

    def script(self) -> TestStream:
        """The script, one event per step."""
        script = TestStream()
        for step in self.steps:
            script = extend(script, step.line)
        return script


def extend(script: TestStream, line: str) -> TestStream:
    """The script and one more line."""
    parts = [_part(part) for part in line.split(" & ")]
    if len(parts) > 1:
        return script.step(**{name: value for part in parts for name, value in part.items() if value is not None})
    match parts[0]:
        case {"rows": rows, "input": of}:
            return script.add(rows, input=of)
        case {"watermark": time, "input": of}:
            return script.advance_watermark_to(time, input=of)
        case {"by": delay}:
            return script.advance_processing_time_by(delay)
        case {"clock": time}:
            return script.advance_processing_time_to(time)
    raise AssertionError(line)


def _part(text: str) -> dict[str, Any]:
    """The rows that arrive, or the new value of a clock; a step by the names of its arguments."""
    word, _, rest = text.partition(" ")
    if word == "add":
        of, rows = _of_input(rest, r"(\w+):(.*)")
        return {"rows": [_row(part) for part in rows.split(";") if part.strip()], "input": of}
    if word == "watermark":
        of, time = _of_input(rest, r"(\w+) (.*)")
        return {"watermark": math.inf if time == "infinity" else _value(time), "input": of}
    return {"by": float(rest)} if rest.startswith("+") else {"clock": _value(rest)}


def _of_input(text: str, form: str) -> tuple[str | None, str]:
    """The input of a merge that a line names, and the rest."""
    named = re.fullmatch(form, text)
    return (named[1], named[2].strip()) if named else (None, text)


def _row(text: str) -> dict[str, Any]:
    return {name: _value(value) for name, value in (word.split("=", 1) for word in text.split())}


def _value(word: str) -> Any:
    if re.match(r"\d{4}-\d\d-\d\dT", word):
        return datetime.fromisoformat(word)
    if bounds := re.fullmatch(r"\[(-?\d+),(-?\d+)\)", word):
        return {name: instant(int(us) * 1_000_000) for name, us in zip(("start", "end"), bounds.groups(), strict=True)}
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word


def transcripts() -> list[Transcript]:
    """All of them."""
    return [case for path in sorted(HERE.glob("*.txt")) for case in read(path.stem, path.read_text("utf-8"))]


def read(file: str, text: str) -> Iterator[Transcript]:
    """The cases of one file."""
    for case in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, *lines = case.splitlines()
        lines = [line for line in lines if line.strip() and not line.startswith("#")]
        pipeline = [line for line in lines if line.startswith((".", *WHOLE))]
        refused = None
        steps: list[Step] = []
        for line in lines[len(pipeline) :]:
            if line.startswith(" ") and steps:
                steps[-1] = attrs.evolve(steps[-1], gives=(*steps[-1].gives, line.strip()))
            elif line.strip().startswith("refused "):
                refused = line.strip()
            else:
                assert line.split()[0] in ("add", "watermark", "clock"), f"{file}: {title}: {line}"
                steps.append(Step(line.strip(), ()))
        yield Transcript(file, title, "\n".join(pipeline), refused, tuple(steps))
