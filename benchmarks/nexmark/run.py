"""Nexmark: the answers of several systems compared, or their events per second, in turns.

    python -m benchmarks.nexmark.run --check [--events 200000]
    python -m benchmarks.nexmark.run [--events 10000000] [--queries "q5 q8"] [--systems "beamish spark"] [--rounds 3] [--seed 1]

Every run is a process of its own, one at a time. With ``--check`` each answer must equal plain Python's, or the system refuses the
query; the exit status is 1 if one does not. The results are in build/nexmark/results.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
import pyspark

from benchmarks.nexmark.answers import EXPECTED, Row, checksum, expected
from benchmarks.nexmark.events import KINDS, Settings, write

ROOT = Path(__file__).parents[2]
BUILD = Path("build/nexmark")
SYSTEMS = ("beamish", "spark")


def folder_of(settings: Settings, files: int) -> Path:
    """The folder of events; they are written if they are not there."""
    folder = BUILD / "-".join(map(str, (settings.events, settings.seed, settings.rate, settings.group, files)))
    if not (folder / "about.json").exists():
        write(settings, folder, files)
    return folder


def one(system: str, query: str, folder: Path, *, answer: bool = False) -> dict[str, Any]:
    """A query once."""
    said = {"system": system, "query": query, "folder": str(folder.resolve()), "answer": answer}
    path = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-m", "benchmarks.nexmark.one_query", json.dumps(said)]
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{query} on {system} failed:\n{done.stdout}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def events_of(folder: Path) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """All events of a folder, in order."""
    return {
        kind: [row for path in sorted((folder / kind).iterdir()) for row in pq.read_table(path).to_pylist()]
        for kind in KINDS
    }


def check(folder: Path, queries: Sequence[str], systems: Sequence[str]) -> bool:
    """Whether all answers are those of plain Python, or refusals; printed query by query."""
    events, good = events_of(folder), True
    for query in queries:
        right = expected(query, events)
        for system in systems:
            found = one(system, query, folder, answer=True)
            if "refused" in found:
                print(f"{query:<10} {system:<8} refused: {found['refused']}", flush=True)
                continue
            own: list[Row] = [tuple(row) for row in found["answer"]]
            same = own == right
            good &= same
            print(
                f"{query:<10} {system:<8} {len(own):>8} rows {checksum(own)[:16]} {'equal' if same else 'NOT EQUAL'}",
                flush=True,
            )
            if not same:
                only = [sorted({*one_} - {*other})[:3] for one_, other in ((own, right), (right, own))]
                print(f"    only there: {only[0]}\n    only in Python: {only[1]}")
    return good


def measure(folder: Path, queries: Sequence[str], systems: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """The systems in turns, round after round."""
    results = []
    for query in queries:
        runs: dict[str, list[dict[str, Any]]] = {system: [] for system in systems}
        for _ in range(rounds):
            for system in systems:
                if not (runs[system] and "refused" in runs[system][0]):
                    runs[system].append(one(system, query, folder))
        results.append({"query": query, "runs": runs})
        print(line(query, runs), flush=True)
    return results


def line(query: str, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """A row of the table."""
    parts, first = [f"{query:<10}"], next(iter(runs))
    for system, own in runs.items():
        if "refused" in own[0]:
            parts.append(f"{system} refused ({own[0]['refused']})")
            continue
        rate = median(run["events_per_second"] for run in own)
        cpu = median(run["cpu_seconds"] / run["events"] * 1e6 for run in own)
        parts.append(f"{system} {rate:>9,.0f}/s {cpu:>6.1f} CPU s/M {median(run['peak_mb'] for run in own):>6,.0f} MB")
        if system != first:
            ratios = [a["events_per_second"] / b["events_per_second"] for a, b in zip(runs[first], own, strict=True)]
            parts.append(f"ratio {median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
    return "  ".join(parts)


def main() -> int:
    """Compare or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--events", type=int)
    parser.add_argument("--queries", default=" ".join(EXPECTED))
    parser.add_argument("--systems", default=" ".join(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int)
    said = parser.parse_args()
    queries, systems = said.queries.split(), said.systems.split()
    if said.check:
        # Slower events: the windows of so few would be a single one.
        settings = Settings(said.events or 200_000, said.seed, rate=2_000)
        return 0 if check(folder_of(settings, said.files or 10), queries, systems) else 1
    settings = Settings(said.events or 10_000_000, said.seed)
    results = measure(folder_of(settings, said.files or 40), queries, systems, said.rounds)
    about = {"spark": pyspark.__version__, "machine": platform.processor(), "cores": os.cpu_count()}
    (BUILD / "results.json").write_text(
        json.dumps({**vars(said), **about, "results": results}, indent=1) + "\n", "utf-8"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
