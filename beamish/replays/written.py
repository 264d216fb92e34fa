"""A replay as a pytest file."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import indent, wrap
from typing import Any

import attrs

from beamish.instants import END_OF_TIME_US, instant
from beamish.pane import Pane, RowWindow, Window
from beamish.replays.steps import BatchStep
from beamish.script import MicroBatch, steps_of
from beamish.testing.written import as_python

_WIDEST = 118


@attrs.frozen
class Written:
    """The parts of a test.

    Attributes:
        pipeline: its module or file, and name: ``app:scores``.
        about: sentences for the head.
        steps: the script.
        dropped: the dropped rows in words, each with the number of its batch.
        expected: the output that is asserted, each row with the number of its batch if that is known.
        name: of the test.
        only: the key columns and values of the rows that are compared, if the script gives others too; empty: it does not.
        windows: those that are compared; empty: all.
        initial: the initial rows of tables, by the names of their inputs.
        with_dropped: whether dropped rows are listed.
        hides_dropped: whether they are listed, and are not among ``expected``.
        difference: the first difference, and before which row of ``expected`` it is.
    """

    pipeline: str
    about: Sequence[str]
    steps: Sequence[BatchStep]
    dropped: Sequence[tuple[int, str]]
    expected: Sequence[tuple[int | None, Pane]]
    name: str
    only: Mapping[str, Any]
    windows: Sequence[Window | RowWindow]
    initial: Mapping[str | None, Sequence[Any]]
    with_dropped: bool
    hides_dropped: bool
    difference: tuple[int, str] | None

    def text(self) -> str:
        """The file."""
        noted: dict[int, list[str]] = {}
        for batch, words in self.dropped:
            noted.setdefault(batch, []).extend(f"    # {line}" for line in wrap(words, _WIDEST - 6))
        script = "\n".join(line for step in self.steps for line in _step(step, noted.get(step.batch, ())))
        expected = "\n".join(self._expected())
        windows = [_bounds(one) for one in self.windows]
        initial = _rows(list(self.initial[None])) if None in self.initial else _mapping(self.initial)
        times = any("at(" in text for text in (script, initial, *windows))
        module, _, name = self.pipeline.rpartition(":")
        first, *others = self.about
        head = "\n".join([first, "", *(line for one in others for line in wrap(one, _WIDEST))]) if others else first
        head = head.replace("\\", r"\\").replace('"', r"\"")  # values of rows may be in it
        lines = [f'"""{head}\n"""' if others else f'"""{head}"""', ""]
        lines += [*self._imports(module, name, times=times), "", ""]
        if times:
            lines += ["def at(text):", '    """A time, as text."""', "    return datetime.fromisoformat(text)", "", ""]
        lines += [
            "SCRIPT = (",
            "    TestStream()",
            script,
            ")",
            f"EXPECTED = [\n{expected}\n]" if expected else "EXPECTED = []",
            "",
            "",
        ]
        pipeline = f"{name}.with_dropped()" if self.with_dropped else name
        conditions = [f"pane.key[{column!r}] == {_python(value)}" for column, value in self.only.items()]
        if self.hides_dropped:
            conditions.append('pane.kind != "DROPPED"')
        run = "SCRIPT"
        if self.initial:
            run = "SCRIPT, initial=INITIAL"
            lines[-2:-2] = [f"INITIAL = {initial}"]
        if self.windows:
            lines[-2:-2] = [f"WINDOWS = [{', '.join(windows)}]"]
            conditions.append("pane.window in WINDOWS")
        condition = f" if {' and '.join(conditions)}" if conditions else ""
        lines += [
            f"def test_{self.name}():",
            f"    assert [str(pane) for pane in {pipeline}.run({run}){condition}] == EXPECTED",
            "",
        ]
        return "\n".join(lines)

    def _imports(self, module: str, name: str, *, times: bool) -> list[str]:
        path = Path(module)
        is_file = path.suffix == ".py"
        lines = ["import sys"] if is_file else []
        lines += ["from datetime import datetime"] if times else []
        lines += [""] if lines else []
        lines += ["from beamish.testing import TestStream", ""]
        if is_file:
            lines += [f"sys.path.insert(0, {str(path.parent)!r})", ""]
        root, _, _ = name.partition(".")
        lines.append(f"from {path.stem if is_file else module} import {root}{'  # noqa: E402' * is_file}")
        return lines

    def _expected(self) -> list[str]:
        found: list[str] = []
        last: int | None = None
        for place, (batch, pane) in enumerate(self.expected):
            if batch is not None and batch != last:
                found.append(f"    # batch {batch}")
            last = batch
            found += self._noted(place)
            found.append(f"    {str(pane)!r},")
        return [*found, *self._noted(len(self.expected))]

    def _noted(self, place: int) -> list[str]:
        if self.difference is None or self.difference[0] != place:
            return []
        return [f"    # {line}" for line in wrap(f"The first difference: {self.difference[1]}", _WIDEST - 6)]


def _bounds(window: Window | RowWindow) -> str:
    return f"({', '.join(_at(one) if isinstance(one, dt.datetime) else repr(one) for one in window)})"


def _step(step: BatchStep, noted: Sequence[str]) -> list[str]:
    """A step as a call, below comments."""
    event = step.event
    parts = [(part.input, part) for part in steps_of(event)]
    clock_us = event.clock_us if isinstance(event, MicroBatch) else parts[0][1].clock_us
    moved = {name: part.watermark_us for name, part in parts if part.watermark_us is not None}
    if isinstance(event, MicroBatch):
        rows = _mapping({name: list(part.rows) for name, part in parts if part.rows})
    else:
        rows = _rows(list(parts[0][1].rows))
    given = [] if rows in ("{}", "[]") else [rows]
    if None in moved:
        given.append(f"watermark={_time(moved[None])}")
    elif moved:
        given.append(f"watermark={{{', '.join(f'{name!r}: {_time(us)}' for name, us in moved.items())}}}")
    given += [] if clock_us is None else [f"clock={_time(clock_us)}"]
    call = f"    .step({', '.join(given)})"
    if len(call) > _WIDEST or "\n" in call:
        call = "    .step(\n" + "".join(indent(f"{one},\n", " " * 8) for one in given) + "    )"
    return [f"    # batch {step.batch}", *noted, *call.split("\n")]


def _rows(rows: Sequence[Any]) -> str:
    text = f"[{', '.join(map(_python, rows))}]"
    return text if len(text) <= 90 else "[\n" + "".join(f"    {_python(row)},\n" for row in rows) + "]"


def _mapping(rows: Mapping[str | None, Sequence[Any]]) -> str:
    each = {name: _rows(of) for name, of in rows.items()}
    text = f"{{{', '.join(f'{name!r}: {of}' for name, of in each.items())}}}"
    if len(text) <= 90 and "\n" not in text:
        return text
    return "{\n" + "".join(indent(f"{name!r}: {of},\n", "    ") for name, of in each.items()) + "}"


def _python(value: Any) -> str:
    return as_python(value, _at)


def _at(time: dt.datetime) -> str:
    text = time.astimezone(dt.UTC).isoformat(" ").removesuffix("+00:00")
    return f'at("{text.removesuffix("000") if "." in text else text}Z")'


def _time(us: int) -> str:
    if us == END_OF_TIME_US:
        return 'float("inf")'
    time = instant(us)
    return str(us // 1_000_000) if time.year < 1990 and us % 1_000_000 == 0 else _at(time)


def test_name(words: str) -> str:
    """A function's name from words."""
    return re.sub(r"[^0-9A-Za-z]+", "_", words).strip("_").lower()[:80]
