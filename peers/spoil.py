"""Spoil recorded answers, one row at a time: a decision may not excuse what its peer has not given.

    python -m peers.spoil [PEER ...] [--conditions] [--note]

Each row of a recorded answer is spoiled in each way that it can be, and compared again. A spoiled answer that passes is *excused*: its
difference is decided, or none is found. ``--conditions`` takes decisions for conditions, whatever the peer's own rules predict: how it was
before they were predictions. ``--note`` stores the counts for docs/peers.md.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from peers.cases import read_lines
from peers.compare import RECORDED, RUNS, decisions, differences, explained, is_predicted, peer_of
from peers.peer import Case, Peer, Row

LIMIT = 0.05
"""At most this share of the spoiled rows of a peer may be excused."""
MOST = 30
"""Spoiled answers per case: about as many of each case."""
FOREIGN = 999
"""A row that no case has."""
APART = ("stream", "place")
RESULTS = ("left", "right", "n", "since", "times", "steps")
TIMINGS = {"EARLY": "ON_TIME", "ON_TIME": "LATE", "LATE": "ON_TIME"}


def _without(_: Row) -> Iterator[list[Row]]:
    yield []


def _moved(row: Row) -> Row | None:
    """The row at the place after its own, if places are numbered."""
    match row["place"]:
        case [int() as first, *others]:
            return {**row, "place": [first + 1, *others]}
    return None


def _twice(row: Row) -> Iterator[list[Row]]:
    if later := _moved(row):
        yield [row, later]


def _later(row: Row) -> Iterator[list[Row]]:
    if later := _moved(row):
        yield [later]
    if "after" in row:
        yield [{**row, "after": 0 if row["after"] is None else row["after"] + 1_000_000}]
    if isinstance(row.get("steps"), list):
        yield [{**row, "steps": [row["steps"][0] + 1, *row["steps"][1:]]}]


def _rows(row: Row) -> Iterator[list[Row]]:
    rows = row.get("rows")
    if isinstance(rows, list):
        yield [{**row, "rows": sorted([*rows, FOREIGN])}]
        if rows:
            yield [{**row, "rows": rows[1:]}]


def _retractions(row: Row) -> Iterator[list[Row]]:
    if "replaced" in row:
        yield [{**row, "rows": [FOREIGN] if row["rows"] is None else None}]
        yield [{**row, "replaced": [FOREIGN] if row["replaced"] is None else None}]
        if row["replaced"]:
            yield [{**row, "replaced": [*row["replaced"][1:], FOREIGN]}]


def _timing(row: Row) -> Iterator[list[Row]]:
    if "timing" in row:
        yield [{**row, "timing": TIMINGS[row["timing"]]}]


def _timestamps(row: Row) -> Iterator[list[Row]]:
    if "timestamp" in row:
        yield [{**row, "timestamp": 0 if row["timestamp"] is None else row["timestamp"] + 1000}]


def _numbers(row: Row) -> Iterator[list[Row]]:
    for name in ("index", "on_time_index", "is_first", "is_last"):
        if name in row:
            yield [{**row, name: not row[name] if isinstance(row[name], bool) else row[name] + 1}]


def _values(row: Row) -> Iterator[list[Row]]:
    known = {"rows", "replaced", "timing", "timestamp", "index", "on_time_index", "is_first", "is_last", "after"}
    known |= {"step", "start", "end", "key", *APART}
    if "times" in row:
        yield [{**row, "stream": [*row["stream"][:-1], _other(row["stream"][-1])]}]
    for name in row.keys() - known:
        if not (name == "steps" and isinstance(row[name], list)):
            yield [{**row, name: _other(row[name])}]


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "!"
        case list():
            return [*value, FOREIGN]
        case dict():
            return {}
    return FOREIGN


WAYS: Mapping[str, Callable[[Row], Iterator[list[Row]]]] = {
    "lost": _without,
    "twice": _twice,
    "order": _later,
    "rows": _rows,
    "values": _values,
    "retractions": _retractions,
    "timing": _timing,
    "timestamps": _timestamps,
    "numbers": _numbers,
}
"""How rows are spoiled: what a row becomes."""


def sample(there: list[Row]) -> list[tuple[str, list[Row]]]:
    """At most ``MOST`` of the spoiled answers of a case, evenly."""
    some = list(spoiled(there))
    return some[:: max(1, len(some) // MOST)]


def spoiled(there: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Answers with one row spoiled, each with its way."""
    for at, row in enumerate(there):
        if "failed" not in row:
            for way, spoil in WAYS.items():
                for rows in spoil(row):
                    yield way, [*there[:at], *rows, *there[at + 1 :]]


def _passes(peer: Peer, case: Case, here: list[Row], there: list[Row], *, conditions: bool) -> bool:
    try:
        found = differences(peer, case, here, there)
    except ValueError:  # it is about a row that the case has not
        return False
    return all(explained(one, decisions(peer.name), conditions=conditions) is not None for one in found)


def counts(name: str, *, conditions: bool = False, every: int = 1) -> tuple[Counter[str], Counter[str]]:
    """How many spoiled answers there are of a peer by way, and how many of them are excused; ``every``: only each such case."""
    peer = peer_of(name)
    some: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    for line in read_lines(RECORDED / f"{name}.jsonl.gz")[::every]:
        here = peer.here(line["case"])
        for way, there in sample(line["there"]):
            some[way] += 1
            if conditions or is_predicted(peer, line["case"], here, there):
                excused[way] += _passes(peer, line["case"], here, there, conditions=conditions)
    return some, excused


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Spoil recorded answers: what is seen?")
    parser.add_argument("peers", nargs="*", default=sorted(path.name.split(".")[0] for path in RECORDED.iterdir()))
    parser.add_argument("--conditions", action="store_true", help="take decisions for conditions")
    parser.add_argument("--note", action="store_true", help="store the counts for docs/peers.md")
    options = parser.parse_args()
    runs = json.loads(RUNS.read_text("utf-8"))
    for name in options.peers:
        some, excused = counts(name, conditions=options.conditions)
        by_way = ", ".join(f"{way} {excused[way]}/{number}" for way, number in some.items())
        print(
            f"{name}: {excused.total():,}/{some.total():,} excused ({excused.total() / some.total():.1%}): {by_way}",
            flush=True,
        )
        if options.note and not options.conditions:
            runs[name]["spoiled"] = {way: [number, number - excused[way]] for way, number in some.items()}
            RUNS.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
