"""Cases: drawn from a seed, stored as JSON lines, made smaller."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from peers.peer import Case

NEVER = -(10**15)
"""Before every time, in milliseconds."""
PER_SEED = 500
"""Cases drawn from a seed, before those that others equal are left out; the next ones have the next seed."""


def drawn(
    cases: SearchStrategy[Case], count: int, number: int, keeps: Callable[[Case], bool] = lambda _: True
) -> Iterator[Case]:
    """So many different cases that ``keeps`` takes, always the same for a seed."""
    all_drawn = (case for at in itertools.count(number) for case in _of_seed(cases, at))
    seen: set[str] = set()
    kept = 0
    while kept < count:
        case = next(all_drawn)
        text = json.dumps(case, sort_keys=True)
        if text not in seen:
            seen.add(text)
            if keeps(case):
                kept += 1
                yield case


def _of_seed(cases: SearchStrategy[Case], number: int) -> list[Case]:
    """The cases of a seed, which Hypothesis repeats in part."""
    found: list[Case] = []

    @seed(number)
    @settings(
        max_examples=PER_SEED,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found


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


def on_time(case: Case) -> Iterator[dict[str, Any]]:
    """The script without late rows."""
    watermark = NEVER
    for event in case["script"]:
        watermark = event.get("watermark", watermark)
        if all(row["ts"] >= watermark for row in event.get("rows", [])):
            yield event
