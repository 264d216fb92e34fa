"""Run an engine's adapter on the cases, and report.

    python -m conformance run --adapter "python -m conformance.adapters.beamish" [--level windows] [--json FILE] [--html FILE]
    python -m conformance html FILE

``run`` compares the adapter's answers with the recorded ones: a line per feature, and each case that differs. ``html`` writes the recorded
answers as one page.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from conformance import report, suite
from conformance.adapter import ask


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="conformance", description="Cases of windowing semantics for any engine.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="ask an adapter")
    run.add_argument("--adapter", required=True, help="its command")
    run.add_argument("--name", default="yours", help="the engine's name in the report")
    run.add_argument("--level", action="append", choices=suite.LEVELS, help="a level; all if omitted")
    run.add_argument("--json", type=Path, help="write the results as JSON")
    run.add_argument("--html", type=Path, help="write the results as a page")
    page = commands.add_parser("html", help="write the recorded answers as a page")
    page.add_argument("file", type=Path)
    options = parser.parse_args()
    if options.command == "html":
        options.file.write_text(report.html(list(suite.cases()), {}), "utf-8")
        return
    some = list(suite.cases(options.level or suite.LEVELS))
    answers = {case["id"]: answer for case, answer in zip(some, ask(options.adapter, some), strict=True)}
    results = report.Results(options.name, some, answers)
    print(*results.lines(), sep="\n")
    if options.json:
        options.json.write_text(json.dumps(results.as_json(), indent=1) + "\n", "utf-8")
    if options.html:
        options.html.write_text(report.html(some, {options.name: answers}), "utf-8")
    sys.exit(results.differs)


if __name__ == "__main__":
    main()
