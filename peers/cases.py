"""Cases: drawn from a seed, stored as JSON lines, made smaller."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from peers.peer import Case


def drawn(cases: SearchStrategy[Case], count: int, number: int) -> list[Case]:
    """So many cases, always the same for a seed."""
    found: list[Case] = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found[:count]


def without_parts(case: Case) -> Iterator[Case]:
    """The case without an event, and without a row of one; latest first."""
    script = case["script"]
    for at in reversed(range(len(script))):
        yield {**case, "script": script[:at] + script[at + 1 :]}
    for at in reversed(range(len(script))):
        rows = script[at].get("rows", [])
        for row in reversed(range(len(rows) if len(rows) > 1 else 0)):
            fewer = {**script[at], "rows": rows[:row] + rows[row + 1 :]}
            yield {**case, "script": [*script[:at], fewer, *script[at + 1 :]]}


def read_lines(path: Path) -> list[Any]:
    """JSON lines, compressed."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """JSON lines, compressed; the same bytes for the same values."""
    lines = "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values)
    path.write_bytes(gzip.compress(lines.encode("utf-8"), mtime=0))
