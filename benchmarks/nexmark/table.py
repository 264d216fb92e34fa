"""Tables of Nexmark's results, as Markdown.

    python -m benchmarks.nexmark.table build/nexmark/results.json [build/nexmark/check.json] [--into docs/nexmark.md]

``--into`` replaces the lines between ``<!-- results -->`` and ``<!-- end of results -->`` in a page.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from textwrap import shorten
from typing import Any

Run = Mapping[str, Any]
_PLACE = re.compile(r"(?s)(<!-- results -->\n).*?(<!-- end of results -->\n)")
_MEASURES: Mapping[str, Callable[[Run], float]] = {
    "CPU seconds per million events": lambda run: run["cpu_seconds"] / run["events"] * 1e6,
    "peak memory, MB": lambda run: run["peak_mb"],
    "state, MB": lambda run: run["state_bytes"] / 2**20,
    "seconds until the first event": lambda run: run["session_seconds"],
}


def _of(runs: Sequence[Run], query: str, system: str) -> list[Run]:
    return [run for run in runs if (run["query"], run["system"]) == (query, system)]


def _number(query: str) -> tuple[int, str]:
    """Queries in order: q4 before q11, q11 before q11-early."""
    return int(query.partition("-")[0][1:]), query


def _rate(run: Run) -> float:
    rate: float = run["events_per_second"]
    return rate


def _ratios(runs: Sequence[Run], query: str, system: str) -> list[float]:
    """The rate of beamish beside another's, round by round."""
    ours = {run["round"]: _rate(run) for run in _of(runs, query, "beamish") if "refused" not in run}
    theirs = {run["round"]: _rate(run) for run in _of(runs, query, system) if "refused" not in run}
    return [ours[number] / theirs[number] for number in sorted(ours.keys() & theirs.keys())]


def beside(runs: Sequence[Run], query: str, systems: Sequence[str]) -> str:
    """A query's medians so far, on a line."""
    parts = []
    for system in systems:
        own = _of(runs, query, system)
        if own and "refused" in own[0]:
            parts.append(f"{system} refused")
        elif own:
            ratios = _ratios(runs, query, system) if system != "beamish" else []
            ratio = f" (beamish {median(ratios):.2f})" if ratios else ""
            parts.append(f"{system} {median(map(_rate, own)):,.0f}/s{ratio}")
    return "  ".join(parts)


def tables(found: Mapping[str, Any], answers: Sequence[Run] = ()) -> Iterator[str]:
    """The lines of the tables."""
    runs: Sequence[Run] = found["runs"]
    systems = list(dict.fromkeys(run["system"] for run in runs))
    queries = sorted({run["query"] for run in runs}, key=_number)
    yield from _about(found, systems)
    yield ""
    others = [system for system in systems if system != "beamish"]
    yield f"| events per second | {' | '.join(systems)} | {' | '.join(f'beamish / {other}' for other in others)} |"
    yield f"|---{'|---' * (len(systems) + len(others))}|"
    for query in queries:
        rates = [_median(_of(runs, query, system), _rate) for system in systems]
        ratios = [_span(_ratios(runs, query, other)) for other in others]
        yield f"| {query} | {' | '.join([*rates, *ratios])} |"
    for title, measure in _MEASURES.items():
        yield ""
        yield f"| {title} | {' | '.join(systems)} |"
        yield f"|---{'|---' * len(systems)}|"
        for query in queries:
            yield f"| {query} | {' | '.join(_median(_of(runs, query, system), measure) for system in systems)} |"
    if answers:
        yield ""
        yield "| answer | | rows | SHA-256 | beside plain Python's |"
        yield "|---|---|---|---|---|"
        for answer in sorted(answers, key=lambda one: _number(one["query"])):
            rest = (
                f"{answer['rows']:,} | {answer['sha256'][:16]} | {answer['words']}"
                if "rows" in answer
                else f"| | refused: {shorten(answer['refused'], 90, placeholder=' ...')}"
            )
            yield f"| {answer['query']} | {answer['system']} | {rest} |"


def _about(found: Mapping[str, Any], systems: Sequence[str]) -> Iterator[str]:
    events, machine = found["events"], found["machine"]
    versions = {
        name: version
        for name, version in found["versions"].items()
        if name != "Flink" or any("flink" in one for one in systems)
    }
    rounds = 1 + max(run["round"] for run in found["runs"])
    yield (
        f"{events['events']:,} events, seed {events['seed']}, {rounds} rounds: the median, and of ratios the range. {found['date']}, "
        f"{', '.join(f'{name} {version}' for name, version in versions.items())}; {machine['cores']} cores, {machine['processor']}; "
        f"`{found['command']}`. SHA-256 of the events: {', '.join(f'{kind} {digest[:16]}' for kind, digest in events['sha256'].items())}."
    )


def _median(runs: Sequence[Run], measure: Callable[[Run], float]) -> str:
    if not runs:
        return ""
    if "refused" in runs[0]:
        return "refused"
    value = median(map(measure, runs))
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _span(ratios: Sequence[float]) -> str:
    if not ratios:
        return ""
    spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{median(ratios):.2f}{spread}"


def main() -> None:
    """Print the tables, or put them into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("answers", type=Path, nargs="?")
    parser.add_argument("--into", type=Path)
    said = parser.parse_args()
    answers = json.loads(said.answers.read_text("utf-8"))["answers"] if said.answers else []
    text = "".join(f"{line}\n" for line in tables(json.loads(said.results.read_text("utf-8")), answers))
    if not said.into:
        print(text, end="")
        return
    page = said.into.read_text("utf-8")
    if not _PLACE.search(page):
        raise SystemExit(
            f"{said.into} has no place for results: <!-- results --> and <!-- end of results -->, each on a line"
        )
    said.into.write_text(_PLACE.sub(lambda place: f"{place[1]}{text}{place[2]}", page), "utf-8")


if __name__ == "__main__":
    main()
