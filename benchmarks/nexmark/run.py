"""Nexmark: the answers of several systems compared, or their events per second, in turns.

    python -m benchmarks.nexmark.run --check [--events 200000]
    python -m benchmarks.nexmark.run [--events 10000000] [--queries "q5 q8"] [--systems "beamish spark flink"] [--rounds 3] [--seed 1]
    python -m benchmarks.nexmark.run --late [--check]

Systems: beamish; sql, beamish from Flink's text; spark, Spark's own operators; flink; flink-minibatch. Every run is a process of its own,
one at a time: a round is each query on each system. With ``--check`` each answer must equal plain Python's, or the system refuses the
query; the exit status is 1 if one does not. Results are in build/nexmark/check.json or results.json, written after each run. ``--resume``
keeps what that file has; ``--minutes`` starts no run later. ``python -m benchmarks.nexmark.table`` makes tables of them.

``--late``: events are out of order by 15 seconds, where watermarks wait for 4. beamish corrects its answers for an hour; other systems drop
late rows, so their answers may differ. Results are in check-late.json or results-late.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
import pyspark

import beamish as bm
from benchmarks.nexmark.answers import EXPECTED, Row, checksum, judge
from benchmarks.nexmark.events import KINDS, Settings, write
from benchmarks.nexmark.on_beamish import late_queries
from benchmarks.nexmark.on_flink import VERSION as FLINK
from benchmarks.nexmark.table import beside, tables

ROOT = Path(__file__).parents[2]
BUILD = Path("build/nexmark")
SYSTEMS = ("beamish", "spark", "flink")
LATE_SECONDS = 15
"""Events of the late profile are out of order within groups of this length: not a multiple of a window's, so that windows end within them."""


def late(settings: Settings) -> Settings:
    """The same events, many of them late."""
    return attrs.evolve(settings, group=LATE_SECONDS * settings.rate)


def folder_of(settings: Settings, files: int) -> Path:
    """The folder of events; they are written if they are not there."""
    folder = BUILD / "-".join(map(str, (settings.events, settings.seed, settings.rate, settings.group, files)))
    if not (folder / "about.json").exists():
        write(settings, folder, files)
    return folder


def one(system: str, query: str, folder: Path, *, answer: bool = False, late: bool = False) -> dict[str, Any]:
    """A query once."""
    said = {"system": system, "query": query, "folder": str(folder.resolve()), "answer": answer, "late": late}
    path = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")])
    module = "on_flink" if system.startswith("flink") else "one_query"
    words = [sys.executable, "-m", f"benchmarks.nexmark.{module}", json.dumps(said)]
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{query} on {system} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def events_of(folder: Path) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """All events of a folder, in order."""
    return {
        kind: [row for path in sorted((folder / kind).iterdir()) for row in pq.read_table(path).to_pylist()]
        for kind in KINDS
    }


def check(folder: Path, queries: Sequence[str], systems: Sequence[str], said: argparse.Namespace) -> bool:
    """Whether all answers are those of plain Python, or refusals; printed query by query."""
    stored, events = _file("check", late=said.late), events_of(folder)
    answers = _kept(stored, folder, "answers", resume=said.resume)
    for query in queries:
        for system in systems:
            about: dict[str, Any] = {"query": query, "system": system}
            if any(answer.items() >= about.items() for answer in answers):
                continue
            found = one(system, query, folder, answer=True, late=said.late)
            if "refused" in found:
                about["refused"] = found["refused"]
                print(f"{query:<10} {system:<16} refused: {found['refused']}", flush=True)
            else:
                own: list[Row] = [tuple(row) for row in found["answer"]]
                words, right = judge(system, query, own, events, late=said.late)
                about |= {"rows": len(own), "sha256": checksum(own), "words": words or "NOT EQUAL"}
                print(
                    f"{query:<10} {system:<16} {len(own):>8} rows {about['sha256'][:16]} {about['words']}", flush=True
                )
                if not words:
                    only = [sorted({*one_} - {*other})[:3] for one_, other in ((own, right), (right, own))]
                    print(f"    only there: {only[0]}\n    only in Python: {only[1]}", flush=True)
            answers.append(about)
            _store(stored, folder, answers=answers)
    return all("refused" in answer or answer["words"] != "NOT EQUAL" for answer in answers)


def measure(
    folder: Path, queries: Sequence[str], systems: Sequence[str], said: argparse.Namespace
) -> list[dict[str, Any]]:
    """The systems in turns, round after round."""
    stored, began = _file("results", late=said.late), time.monotonic()
    runs = _kept(stored, folder, "runs", resume=said.resume)
    for number in range(said.rounds):
        for query in queries:
            for system in systems:
                of = {"query": query, "system": system}
                has = [run for run in runs if run.items() >= of.items()]
                if any(run["round"] == number or "refused" in run for run in has):
                    continue
                if time.monotonic() - began > said.minutes * 60:
                    return runs
                runs.append({**of, "round": number, **one(system, query, folder, late=said.late)})
                _store(stored, folder, runs=runs)
            print(f"round {number + 1}: {query:<10} {beside(runs, query, systems)}", flush=True)
    return runs


def _file(name: str, *, late: bool) -> Path:
    """Where results are."""
    return BUILD / f"{name}{'-late' * late}.json"


def _kept(file: Path, folder: Path, name: str, *, resume: bool) -> list[dict[str, Any]]:
    """The results in a file of the same events, if the command resumes."""
    if not (resume and file.exists()):
        return []
    before = json.loads(file.read_text("utf-8"))
    same = before["events"] == json.loads((folder / "about.json").read_text("utf-8"))
    return before[name] if same else []


def _store(file: Path, folder: Path, **found: Any) -> None:
    """Write results with what they are of."""
    about = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": f"python -m benchmarks.nexmark.run {' '.join(sys.argv[1:])}",
        "versions": {
            "beamish": bm.__version__,
            "PySpark": pyspark.__version__,
            "Flink": FLINK,
            "Python": sys.version.split()[0],
        },
        "machine": {"cores": os.cpu_count(), "processor": _processor()},
        "events": json.loads((folder / "about.json").read_text("utf-8")),
    }
    file.write_text(json.dumps({**about, **found}, indent=1) + "\n", "utf-8")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")


def main() -> int:
    """Compare or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--events", type=int)
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--queries")
    parser.add_argument("--systems", default=" ".join(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    said = parser.parse_args()
    queries, systems = (
        (said.queries or " ".join(late_queries() if said.late else EXPECTED)).split(),
        said.systems.split(),
    )
    # A check has slower events: the windows of so few would be a single one.
    settings = (
        Settings(said.events or 200_000, said.seed, rate=2_000)
        if said.check
        else Settings(said.events or 10_000_000, said.seed)
    )
    settings = late(settings) if said.late else settings
    if said.check:
        return 0 if check(folder_of(settings, said.files or 10), queries, systems, said) else 1
    measure(folder_of(settings, said.files or 40), queries, systems, said)
    print("\n".join(tables(json.loads(_file("results", late=said.late).read_text("utf-8")))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
