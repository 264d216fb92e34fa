"""Cases and answers: reading, comparing, judging an engine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "cases"
VERSION = 1
LEVELS = ("windows", "triggers", "sessions", "joins", "changes", "retractions")
Case = dict[str, Any]
Answer = Mapping[str, Any]
"""``rows``, or the reason without them: ``refused``, ``failed`` or ``unsupported``. ``without``: fields that the engine does not tell."""


def cases(levels: Iterable[str] = LEVELS) -> Iterator[Case]:
    """The cases of some levels, in the order of their files."""
    for level in levels:
        lines = (CASES / f"{level}.jsonl").read_text("utf-8").splitlines()
        yield from map(json.loads, lines)


def question(case: Case) -> Case:
    """A case as an adapter gets it: without answers."""
    return {name: value for name, value in case.items() if name not in ("answers", "decisions")}


def same(case: Case, one: Answer, other: Answer) -> bool:
    """Whether two answers are the same: in any order, by the fields that the case compares."""
    if "rows" in one and "rows" in other:
        fields = {*case["fields"]}.difference(one.get("without", ()), other.get("without", ()))
        return _compared(fields, one["rows"]) == _compared(fields, other["rows"])
    return any(why in one and why in other for why in ("refused", "failed"))


def _compared(fields: Iterable[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps({name: _plain(row.get(name)) for name in fields}, sort_keys=True) for row in rows)


def _plain(value: Any) -> Any:
    match value:
        case bool() | None | str():
            return value
        case int() | float():
            return round(float(value), 6)
        case list():
            return sorted(map(_plain, value), key=json.dumps)
    return value


def verdict(case: Case, answer: Answer) -> tuple[str, list[str]]:
    """How an answer compares with the recorded ones, and with which engines' it is the same.

    ``agrees``: with all engines that can express the case. ``takes a side``: they differ, and it agrees with one. ``differs``: from all of
    them. Or ``unsupported``.
    """
    if "unsupported" in answer:
        return "unsupported", []
    asked = {engine: recorded for engine, recorded in case["answers"].items() if "unsupported" not in recorded}
    sides = [engine for engine, recorded in asked.items() if same(case, recorded, answer)]
    if len(sides) == len(asked):
        return "agrees", sides
    return ("takes a side" if sides else "differs"), sides
