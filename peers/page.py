"""Write the counts of the last noted runs and the decided differences into docs/peers.md: python -m peers.page.

The counts are those of runs.json, which ``python -m peers.compare --note`` writes. tests/peers/test_page.py compares the page with both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers.compare import RUNS, Decision, decisions, peer_of

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
    yield from ("| cases | agree |", "|---|---|")
    yield f"| `{name}` {run['version']} | {run['agreed']:,}/{run['cases']:,} |"
    for kind, (cases, agreed) in run["kinds"].items():
        part_of = kind.split()[0] in run["kinds"].keys() - {kind}
        if not part_of and RARE * run["cases"] <= cases < run["cases"]:
            yield f"| `{kind}` | {agreed:,}/{cases:,} |"
    if decisions(name):
        yield from ("", "| difference | cases | |", "|---|---|---|")
        yield from (
            f"| {_text(one)} | {run['decided'].get(one.name, 0):,} | {_fault(one)} |" for one in decisions(name)
        )


def _text(decision: Decision) -> str:
    """The difference, with a link to the rule that we follow on purpose."""
    return f"[{decision.text}](rules/{decision.rule})" if decision.rule else decision.text


def _fault(decision: Decision) -> str:
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
