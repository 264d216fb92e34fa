"""Write the counts of the last noted runs and the decided differences into docs/peers.md: python -m peers.page.

The counts are those of runs.json, which ``python -m peers.compare --note`` writes. tests/peers/test_page.py compares the page with both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers.compare import JUDGED, RUNS, Decision, decisions, peer_of
from peers.worth import HARD

PAGE = Path(__file__).parents[1] / "docs" / "peers.md"
RARE = 0.01
"""Kinds with fewer of all cases are not listed."""
PART = re.compile(r"(?<=<!-- peers/page.py -->\n).*?(?=<!-- end -->)", re.DOTALL)


def part() -> str:
    """The generated part of the page."""
    runs = json.loads(RUNS.read_text("utf-8"))
    return "".join(line + "\n" for name in runs for line in _peer(name, runs[name])) + "\n"


def _peer(name: str, run: dict[str, Any]) -> Iterator[str]:
    yield from ("", f"## {peer_of(name).title}", "")
    yield from ("| cases | judged | agree |", "|---|---|---|")
    kinds = run["kinds"]
    for kind, (judged, agreed) in sorted(kinds.items(), key=lambda one: (one[0] != JUDGED, one[0])):
        part_of = kind.split()[0] in kinds.keys() - {kind}
        if kind == JUDGED:
            yield f"| `{name}` {run['version']}, {run['cases']:,} drawn | {judged:,} | {agreed:,} |"
        elif not part_of and RARE * run["cases"] <= judged < run["cases"]:
            yield f"| `{kind}` | {judged:,} | {agreed:,} |"
    tested = run["tested"]
    shares = ", ".join(f"{what} {tested.get(what, 0) / run['cases']:.0%}" for what in ("hard", *HARD, "refused"))
    yield from ("", f"Shares of the drawn cases: {shares}.")
    spoiled = run["spoiled"].values()
    yield f"Spoiled rows seen: {sum(seen for _, seen in spoiled):,} of {sum(some for some, _ in spoiled):,}."
    if decisions(name):
        yield from ("", "| there | cases | |", "|---|---|---|")
        yield from (f"| {text(one)} | {run['decided'].get(one.name, 0):,} | {fault(one)} |" for one in decisions(name))


def text(decision: Decision) -> str:
    """The difference, with a link to the rule that we follow on purpose."""
    return f"[{decision.text}](rules/{decision.rule})" if decision.rule else decision.text


def fault(decision: Decision) -> str:
    """Whether the peer has a fault."""
    return f"fault {_link(decision.issue)}".rstrip() if decision.kind == "fault" else ""


def _link(issue: str) -> str:
    """The link of an issue: owner/name#number on GitHub, or NAME-number in Apache's JIRA."""
    repository, _, number = issue.partition("#")
    if number:
        return f"[{issue}](https://github.com/{repository}/issues/{number})"
    return f"[{issue}](https://issues.apache.org/jira/browse/{issue})" if issue else ""


def main() -> None:
    """Write it."""
    PAGE.write_text(PART.sub(lambda _: part(), PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
