"""Events a second of beamish beside its peers, in turns: ``make bench``.

    python benchmarks/run.py [--only B1,B5] [--rounds 3] [--scale 1.0]

Every run is a process of its own, one at a time; a workload's programs take turns, round after round, so that a
machine whose speed drifts tells both the same. The ratio is taken round by round; the table has its median and range.
Results go to build/bench/results.json and, where matplotlib is installed, build/bench/ratios.png.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import attrs

OUT = Path("build/bench")


@attrs.frozen
class Workload:
    """Two programs on the same rows.

    Attributes:
        rows, files, keys: of our program's data; ``peer_rows`` where the peer is too slow for so many.
        least: the ratio that is wanted.
    """

    name: str
    what: str
    ours: str
    peer: str
    least: float
    rows: int = 4_000_000
    keys: int = 10_000
    files: int = 8
    peer_rows: int | None = None
    mode: str = "stream"
    figure: str = "events_per_second"


WORKLOADS = [
    Workload("B1", "1 min, count+sum, early/on-time/late", "beamish", "Spark update", 1.0),
    Workload("B1a", "B1 by hand", "beamish", "applyInPandasWithState", 25, peer_rows=200_000),
    Workload("B1t", "B1 by hand", "beamish", "transformWithState", 50, peer_rows=100_000),
    Workload("B1f", "B1's floor: Python only counts", "beamish", "floor", 0.0),
    Workload("B2", "B1 with 1,000,000 keys", "beamish", "Spark update", 1.5, keys=1_000_000),
    Workload("B3", "B1 retracting", "beamish retracting", "beamish", 0.8),
    Workload("B4", "10 min by 1 min", "beamish sliding", "Spark sliding update", 1.0),
    Workload("B5", "sessions, early, retracting", "beamish sessions", "Spark session_window append", 0.6),
    Workload("B6", "final pane only", "beamish final", "Spark append", 1.0),
    Workload("B6b", "B6 as a batch, 16 M rows", "beamish final", "Spark append", 0.95, rows=16_000_000, mode="batch"),
    Workload("B7", "seven aggregates", "beamish seven", "Spark seven update", 0.8),
    Workload(
        "B8",
        "1,000-row batches, ms a batch",
        "beamish",
        "Spark update",
        1.3,
        rows=20_000,
        files=20,
        keys=1000,
        figure="batch_ms",
    ),
    Workload(
        "B10",
        "a user's own Python accumulation",
        "beamish own python",
        "applyInPandasWithState own python",
        5,
        rows=1_000_000,
        peer_rows=200_000,
    ),
    Workload("B11", "4 M rows beside 1 M", "beamish", "beamish", 0.85, peer_rows=1_000_000),
    Workload(
        "B11b", "16 M rows beside 4 M", "beamish", "beamish", 0.85, rows=16_000_000, files=32, peer_rows=4_000_000
    ),
]


def run(program: str, rows: int, workload: Workload) -> dict[str, Any]:
    """One program once."""
    files = workload.files if rows == workload.rows or workload.peer_rows is None else max(2, 8 * rows // 4_000_000)
    files = 4 if rows < 1_000_000 and workload.figure != "batch_ms" else files
    words = [sys.executable, "benchmarks/one_run.py", program, str(rows), str(files), str(workload.keys), workload.mode]
    # Spark's workers import the programs too.
    path = os.pathsep.join([str(Path("benchmarks").resolve()), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path})
    if done.returncode:
        raise SystemExit(f"{program} failed:\n{done.stdout}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def compare(workload: Workload, rounds: int, scale: float) -> dict[str, Any]:
    """A workload's two programs in turns."""
    runs: dict[str, list[dict[str, Any]]] = {"ours": [], "peer": []}
    for _ in range(rounds):
        runs["ours"].append(run(workload.ours, int(workload.rows * scale), workload))
        runs["peer"].append(run(workload.peer, int((workload.peer_rows or workload.rows) * scale), workload))
    pairs = zip(runs["ours"], runs["peer"], strict=True)
    ratios = [ours[workload.figure] / peer[workload.figure] for ours, peer in pairs]
    return {"workload": attrs.asdict(workload), "runs": runs, "ratios": ratios}


def line(result: dict[str, Any]) -> str:
    """A row of the table."""
    workload, ratios = Workload(**result["workload"]), result["ratios"]
    ours, peer = (median(one[workload.figure] for one in result["runs"][who]) for who in ("ours", "peer"))
    ratio = median(ratios)
    met = ratio <= workload.least if workload.figure == "batch_ms" else ratio >= workload.least
    range_ = f"{min(ratios):.2f}-{max(ratios):.2f}"
    return (
        f"{workload.name:<5} {workload.what:<38} {ours:>11,.0f} {peer:>11,.0f}  {ratio:>7.2f} ({range_:<11}) "
        f"{workload.least:>5} {'met' if met else 'not met'}   beside {workload.peer}"
    )


def plot(results: Sequence[dict[str, Any]], path: Path) -> None:
    """The ratios as bars, if matplotlib is there."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return
    names = [
        f"{result['workload']['name']}  {result['workload']['ours']}\nbeside {result['workload']['peer']}"
        for result in results
    ]
    figure, axes = plt.subplots(figsize=(9, 0.6 * len(names) + 1))
    axes.barh(names, [median(result["ratios"]) for result in results])
    axes.scatter(
        [result["workload"]["least"] for result in results], names, color="black", marker="|", s=200, label="wanted"
    )
    axes.set(xscale="log", xlabel="times as many events a second (B8: times as long a batch)")
    axes.axvline(1, color="grey", linewidth=0.5)
    axes.invert_yaxis()
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Run the workloads asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads, such as B1,B5")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="times as many rows")
    said = parser.parse_args()
    wanted = [one for one in WORKLOADS if not said.only or one.name in said.only.split(",")]
    OUT.mkdir(parents=True, exist_ok=True)
    print(f"{'':<5} {'':<38} {'ours':>11} {'peer':>11}  {'ratio':>7} {'':<13} wanted")
    results = []
    for workload in wanted:
        results.append(compare(workload, said.rounds, said.scale))
        print(line(results[-1]), flush=True)
        (OUT / "results.json").write_text(json.dumps(results, indent=1))
    plot(results, OUT / "ratios.png")


if __name__ == "__main__":
    main()
