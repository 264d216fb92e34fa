"""Write docs/engines.md: each decided difference with its smallest case as a picture: python -m peers.engines.

tests/peers/test_engines.py compares the page with the decisions and the recorded answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance import picture
from peers.cases import read_lines
from peers.compare import RECORDED, RUNS, Decision, decisions, peer_of
from peers.neutral import answer_of, pipeline_of, script_of
from peers.page import PART, fault, text

DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURES = DOCS / "engines.md", DOCS / "pictures" / "engines"


def pictures() -> dict[str, str]:
    """The picture of each decision, by its name."""
    return {one.name: _picture(one) for name in json.loads(RUNS.read_text("utf-8")) for one in decisions(name)}


def _picture(decision: Decision) -> str:
    lines = read_lines(RECORDED / f"{decision.peer}.jsonl.gz")
    there: list[Any] = next(line["there"] for line in lines if line["case"] == decision.case)
    peer = peer_of(decision.peer)
    answers = {"beamish": peer.here(decision.case), peer.title: there}
    return picture.svg(
        {
            "pipeline": pipeline_of(decision.peer, decision.case),
            "script": script_of(decision.peer, decision.case),
            "answers": {engine: answer_of(decision.peer, decision.case, rows) for engine, rows in answers.items()},
        },
        answers=True,
    )


def part() -> str:
    """The generated part of the page."""
    return "".join(line + "\n" for name in json.loads(RUNS.read_text("utf-8")) for line in _peer(name)) + "\n"


def _peer(name: str) -> Iterator[str]:
    if decisions(name):
        yield from ("", f"## {peer_of(name).title}")
    for one in decisions(name):
        told = " ".join(filter(None, [text(one), fault(one).capitalize() and f"({fault(one)})"]))
        yield from ("", told, "", f"![The smallest case](pictures/engines/{one.name}.svg)")


def main() -> None:
    """Write it."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        old.unlink()
    for name, svg in pictures().items():
        (PICTURES / f"{name}.svg").write_text(svg + "\n", "utf-8")
    PAGE.write_text(PART.sub(lambda _: part(), PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
