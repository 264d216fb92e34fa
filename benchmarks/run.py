"""Events per second of beamish and its peers, in turns: ``make bench``.

    python benchmarks/run.py [--only B1,B5] [--rounds 3] [--warmup 1] [--scale 1.0] [--beside ../other-tree]

Every run is a process of its own, one at a time, and its first batch is not counted; a workload's programs take turns, the other one
first in each second round, so that drift of the machine affects both equally. The ratio is taken round by round; the table has its median and
range. With ``--beside`` the peer is the same program of another tree of this project, such as one without a change. Results go to
build/bench/results.json and, where matplotlib is installed, build/bench/ratios.png.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import attrs

OUT = Path("build/bench")


@attrs.frozen
class Workload:
    """Two programs that are compared, each on rows of its own.

    Attributes:
        rows, files, keys, kind, master: arguments of our program (``one_run.py``).
        parts: number of files per micro-batch.
        key: type of the keys (``data.py``).
        other: size in bytes of an unread column.
        settings: Spark settings beside those of ``one_run.py``.
        mode: "stream", "batch", or "state": a stream that compacts its state files at every commit.
        peer_has: arguments that differ for the peer.
        least: lower bound of the ratio, for times and bytes (``figure``) upper bound; 0: none.
        most_rounds: maximum number of rounds, for peers that take minutes.
    """

    name: str
    what: str
    ours: str
    peer: str
    least: float
    rows: int = 4_000_000
    keys: int = 10_000
    files: int = 8
    kind: str = "plain"
    mode: str = "stream"
    master: str = "local[2]"
    parts: int = 1
    key: str = "string"
    other: int = 0
    settings: dict[str, Any] = attrs.Factory(dict)
    figure: str = "events_per_second"
    peer_has: dict[str, Any] = attrs.Factory(dict)
    most_rounds: int = 100

    @property
    def less_is_better(self) -> bool:
        return self.figure != "events_per_second"


_BY_HAND: dict[str, Any] = {"peer_has": {"rows": 1_500_000, "files": 3}, "most_rounds": 1}
_BY_HAND_MANY: dict[str, Any] = {"peer_has": {"rows": 1_000_000, "files": 2}, "most_rounds": 1}
_FEW: dict[str, Any] = {"keys": 1000, "files": 100, "kind": "few", "figure": "batch_ms"}
_LONG: dict[str, Any] = {"rows": 12_000_000, "files": 24}  # a JVM that has stopped compiling
_NONE: dict[str, Any] = {**_FEW, "rows": 200_000, "kind": "no rows"}
_RETAINED: dict[str, Any] = {"kind": "retained", "files": 0}
_LOG = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
_CHANGELOG: dict[str, Any] = {"settings": _LOG, "peer_has": {"settings": {}}}  # this makes the peer slower
_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager"
}
_DROP_DUPLICATES = "Spark dropDuplicatesWithinWatermark"
_CLUSTER = "local-cluster[2,1,2048]"
_PEAK: dict[str, Any] = {"figure": "worker_peak_mb", "rows": 1_500_000, "files": 3, "most_rounds": 1}
_BY_HAND_PEER = "applyInPandasWithState"


def _shape(number: int, what: str, **has: Any) -> Workload:
    """B1 on data of a different shape."""
    return Workload(f"X{number}", f"B1, {what}", "beamish", "Spark update", 1.0, **has)


def _floor(of: str, **has: Any) -> Workload:
    """The upper bound of a shape: Python stages that do nothing with the same rows."""
    return Workload(f"{of}f", f"{of}'s floor", "floor of two stages", "Spark update", 0, **has)


def _answered_floor(of: str, **has: Any) -> Workload:
    """The same with a precomputed answer: it reads, writes and emits as much as ours."""
    return Workload(
        f"{of}a", f"{of} beside its floor with panes, state", "beamish", f"floor with {of}'s answer", 0, **has, **_LONG
    )


def _partitions(number: int) -> dict[str, Any]:
    return {"settings": {"spark.sql.shuffle.partitions": number}}


WORKLOADS = [
    Workload("B1", "1 min, count+sum, early/on-time/late", "beamish", "Spark update", 1.0),
    Workload("B1a", "B1 by hand", "beamish", "applyInPandasWithState", 25, **_BY_HAND),
    Workload("B1b", "B1a, 100,000 keys", "beamish", "applyInPandasWithState", 25, keys=100_000, **_BY_HAND_MANY),
    Workload("B1t", "B1 by hand", "beamish", "transformWithState", 50, **_BY_HAND),
    Workload("B1f", "B1's floor: Python only counts", "beamish", "floor", 0),
    Workload("B1l", "B1, changelog checkpoints", "beamish", "Spark update", 0, **_CHANGELOG),
    Workload("B1p", "B1, each batch in two files", "beamish", "Spark update", 1.05, parts=2),
    Workload("B1h", "B1, half the rows of one key", "beamish", "beamish", 0, kind="hot", peer_has={"kind": "plain"}),
    Workload("B1c", "B1 on two executors", "beamish", "Spark update", 0, master=_CLUSTER),
    Workload("B2", "B1 with 1,000,000 keys", "beamish", "Spark update", 1.5, keys=1_000_000),
    Workload("B3", "B1 retracting", "beamish retracting", "beamish", 0.8),
    Workload("B4", "10 min by 1 min", "beamish sliding", "Spark sliding update", 1.0),
    Workload("B5", "sessions, early, retracting", "beamish sessions", "Spark session_window append", 0.6),
    Workload("B6", "final pane only", "beamish final", "Spark append", 1.0),
    Workload("B6l", "B6, changelog checkpoints", "beamish final", "Spark append", 0, **_CHANGELOG),
    Workload("B6b", "B6 as a batch, 16 M rows", "beamish final", "Spark append", 0.95, rows=16_000_000, mode="batch"),
    Workload("B7", "seven aggregates", "beamish seven", "Spark seven update", 0.8),
    Workload(
        "B9",
        "ms a batch, 5 M windows kept / 0.5 M",
        "beamish retained",
        "beamish retained",
        1.3,
        rows=5_000_000,
        peer_has={"rows": 500_000},
        figure="last_batches_ms",
        **_RETAINED,
    ),
    Workload(
        "B10",
        "a user's own Python accumulation",
        "beamish own python",
        "applyInPandasWithState own python",
        5,
        rows=1_000_000,
        files=2,
        most_rounds=2,
    ),
    Workload("B11", "4 M rows beside 1 M", "beamish", "beamish", 0.85, peer_has={"rows": 1_000_000, "files": 2}),
    Workload(
        "B11b",
        "16 M rows beside 4 M",
        "beamish",
        "beamish",
        0.85,
        rows=16_000_000,
        files=32,
        peer_has={"rows": 4_000_000, "files": 8},
    ),
    Workload(
        "B12",
        "bytes of state files, 0.5 M windows",
        "beamish state",
        "Spark state",
        1.0,
        rows=500_000,
        mode="state",
        figure="state_file_bytes",
        **_RETAINED,
    ),
    Workload("D1", "1 M ids known, 1 % replays", "beamish once", _DROP_DUPLICATES, 0.7, rows=1_000_000, kind="replays"),
    Workload(
        "D1m",
        "D1, 10 M ids",
        "beamish once",
        _DROP_DUPLICATES,
        0.7,
        rows=10_000_000,
        files=20,
        kind="replays",
        most_rounds=1,
    ),
    Workload("D2", "B1, each x once per key and window", "beamish once per window", "beamish", 0.6),
    Workload("F1", "last 1, 12, 24 h by 1 min beside B6", "beamish rolling", "beamish final", 0.4),
    Workload("F1h", "F1 as a history", "beamish rolling history", "beamish final", 0),
    Workload(
        "F1s",
        "F1 beside three sliding windows",
        "beamish rolling",
        "beamish three sliding",
        50,
        peer_has={"rows": 20_000, "files": 2, "keys": 100},
        most_rounds=1,
    ),
    Workload("F1a", "F1 by hand", "beamish rolling", "applyInPandasWithState rolling", 9, **_BY_HAND),
    Workload("O1", "sum of 1 h before each row, lag", "beamish over", "applyInPandasWithState over", 4, **_BY_HAND),
    Workload("R1", "every 100 rows per key", "beamish rows", "beamish final", 0.7),
    Workload("R1m", "R1, 1,000,000 keys", "beamish rows", "beamish final", 0, keys=1_000_000),
    Workload("R1a", "R1 by hand", "beamish rows", "applyInPandasWithState rows", 8, **_BY_HAND),
    Workload("R2", "numbers brought beside given", "beamish rows brought", "beamish rows", 0),
    Workload("R3", "10 rows by 1 beside 10 min by 1", "beamish rows hopping", "beamish sliding", 0, rows=1_000_000),
    Workload("R4", "100,000 rows of the stream", "beamish rows over the stream", "beamish rows", 0),
    Workload("S1", "B1, a change per half a window", "beamish limited", "beamish", 0.85),
    Workload("S2", "B3, a net change per half a window", "beamish limited retracting", "beamish retracting", 0.8),
    Workload("S3", "a pane per bundle, held until closed", "beamish until closed", "beamish never", 0.7),
    Workload(
        "S4",
        "10,000 changes, 1 M held / 0.1 M, ms",
        "beamish changes held",
        "beamish changes held",
        1.5,
        rows=1_000_000,
        peer_has={"rows": 100_000},
        kind="held",
        files=0,
        figure="last_batches_ms",
    ),
    Workload(
        "S5",
        "changes, one per key and second",
        "beamish changes limited",
        "transformWithState limited",
        20,
        peer_has={"rows": 1_000_000, "files": 2},
        most_rounds=1,
    ),
    Workload("S6", "EMIT FINAL beside its pipeline", "beamish sql final", "beamish never", 0.95),
    Workload("S6s", "EMIT FINAL", "beamish sql final", "Spark append", 1.0),
    Workload("J1", "inner join of two streams", "beamish join", "Spark join", 0, keys=100_000),
    Workload("J1o", "J1, each pair once, as it comes", "beamish join once", "Spark join", 2.0, keys=100_000),
    Workload(
        "J2", "each pair once, a minute apart", "beamish join once in range", "Spark join in range", 2.0, keys=100_000
    ),
    Workload("V1", "as-of join, 10 rows per change", "beamish as of", "Spark range join", 0, rows=1_100_000),
    Workload("V1k", "V1, 1 M keys", "beamish as of", "Spark range join", 0, rows=1_100_000, keys=1_000_000),
    Workload("V1r", "V1, 1 % late, corrected", "beamish as of retracting", "Spark range join", 0, rows=1_100_000),
    Workload(
        "V1t",
        "V1 by hand",
        "beamish as of",
        "transformWithState as of",
        0,
        rows=1_100_000,
        peer_has={"rows": 110_000, "files": 2},
        most_rounds=1,
    ),
    Workload(
        "V1p",
        "V1 by hand",
        "beamish as of",
        "applyInPandasWithState as of",
        0,
        rows=1_100_000,
        peer_has={"rows": 110_000, "files": 2},
        most_rounds=1,
    ),
    Workload("L1", "B3 as a changelog beside its panes", "beamish changelog spark", "beamish retracting", 0.95),
    Workload("L1u", "L1 as upserts", "beamish changelog upsert", "beamish retracting", 0.95),
    Workload("L1d", "L1, both images in a row", "beamish changelog debezium", "beamish retracting", 0),
    Workload("L2", "B3 from a changelog, inserts only", "beamish from inserts", "beamish retracting", 0),
    Workload("L2u", "L2, one row in ten updated", "beamish from changelog", "beamish from inserts", 0),
    Workload("C1", "two stages", "beamish chain", "Spark chain", 1.0),
    Workload("C1k", "two stages keyed alike", "beamish two alike", "Spark two alike", 1.5),
    Workload("C1a", "C1k, beside apart", "beamish two alike", "beamish two alike, apart", 1.0),
    Workload("Q1", "ms per batch of 2,000 rows", "beamish", "Spark update", 1.2, rows=200_000, **_FEW),
    Workload("Q1f", "Q1 beside its floor", "beamish", "floor of two stages", 0, rows=200_000, **_FEW),
    Workload(
        "Q1s",
        "Q1's floor, with packing and without",
        "floor of two stages",
        "floor of one stage",
        0,
        rows=200_000,
        **_FEW,
    ),
    Workload("Q1c", "Q1, three stages", "beamish longer chain", "Spark longer chain", 1.3, rows=200_000, **_FEW),
    Workload("Q1k", "Q1, three keyed alike", "beamish three alike", "Spark three alike", 0.75, rows=200_000, **_FEW),
    Workload(
        "Q1ka", "Q1k, beside apart", "beamish three alike", "beamish three alike, apart", 0.75, rows=200_000, **_FEW
    ),
    Workload(
        "Q1cf",
        "Q1c beside its floor",
        "beamish longer chain",
        "floor of three pairs of stages",
        0,
        rows=200_000,
        **_FEW,
    ),
    Workload(
        "Q1l",
        "Q1, changelog checkpoints",
        "beamish",
        "beamish",
        0,
        rows=200_000,
        settings=_LOG,
        peer_has={"settings": {}},
        **_FEW,
    ),
    Workload(
        "Q1m",
        "Q1, checkpoints by file systems",
        "beamish",
        "beamish",
        0,
        rows=200_000,
        settings=_FILES,
        peer_has={"settings": {}},
        **_FEW,
    ),
    Workload("Q2", "ms per batch of 100 rows", "beamish", "Spark update", 1.2, rows=10_000, **_FEW),
    Workload("Q2f", "Q2 beside its floor", "beamish", "floor of two stages", 0, rows=10_000, **_FEW),
    Workload("Q3", "ms per batch without rows", "beamish", "Spark update", 1.1, **_NONE),
    Workload("Q3i", "Q3 with an idle timeout", "beamish with a clock", "Spark update", 1.1, **_NONE),
    Workload("Q3f", "Q3 beside its floor", "beamish", "floor of two stages", 0, **_NONE),
    Workload("Q3if", "Q3i beside its floor", "beamish with a clock", "floor of two stages with a clock", 0, **_NONE),
    _shape(1, "1,000 windows per batch", keys=200, **_LONG),
    _shape(2, "10,000 windows per batch", keys=2_000, **_LONG),
    _shape(3, "20,000 windows per batch", keys=4_000, **_LONG),
    _shape(4, "390,000 windows per batch", keys=200_000),
    _shape(5, "1,300,000 windows per batch", keys=400_000, rows=12_000_000, files=6),
    _shape(6, "keys of 4 letters", key="4 letters"),
    _shape(7, "keys of 40 letters", key="40 letters"),
    _shape(8, "keys of bigint", key="bigint"),
    _shape(9, "keys of two columns, a struct", key="struct"),
    _shape(10, "two files per batch", parts=2),
    _shape(11, "eight files per batch", parts=8),
    _shape(12, "10 bytes nobody asks for", other=10),
    _shape(13, "100 bytes nobody asks for", other=100),
    _shape(14, "1,000 bytes nobody asks for", other=1000),
    _shape(15, "8 shuffle partitions", **_partitions(8)),
    _shape(16, "200 shuffle partitions", **_partitions(200), rows=2_000_000, files=4),
    _floor("X1", keys=200, **_LONG),
    _floor("X2", keys=2_000, **_LONG),
    _floor("X3", keys=4_000, **_LONG),
    _answered_floor("X1", keys=200),
    _answered_floor("X2", keys=2_000),
    _answered_floor("X3", keys=4_000),
    _floor("X12", other=10),
    _floor("X15", **_partitions(8)),
    _floor("X16", **_partitions(200), rows=2_000_000, files=4),
    Workload("M1", "MB of a worker at most, B1", "beamish", _BY_HAND_PEER, 1.0, **_PEAK),
    Workload("M1f", "M1's floor", "floor of two stages", _BY_HAND_PEER, 0, **_PEAK),
    Workload("M4", "MB of a worker at most, B4", "beamish sliding", _BY_HAND_PEER, 0, **_PEAK),
    Workload("M5", "MB of a worker at most, B5", "beamish sessions", _BY_HAND_PEER, 0, **_PEAK),
    Workload(
        "W1",
        "seconds, three windowings in one pass",
        "beamish three windowings",
        "beamish three queries",
        1.0,
        figure="wall_seconds",
    ),
]


def run(program: str, workload: Workload, scale: float, tree: Path = Path(), **other: Any) -> dict[str, Any]:
    """One program once, from a tree."""
    said = {
        name: getattr(workload, name)
        for name in (
            "rows",
            "files",
            "keys",
            "kind",
            "mode",
            "master",
            "parts",
            "key",
            "other",
            "settings",
        )
    } | other
    said = {"program": program, **said, "rows": int(said["rows"] * scale)}
    # Spark's workers import the programs too.
    tree = tree.resolve()
    path = os.pathsep.join([str(tree / "benchmarks"), str(tree), os.environ.get("PYTHONPATH", "")])
    words, env = [sys.executable, "benchmarks/one_run.py", json.dumps(said)], {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, cwd=tree)
    if done.returncode:
        raise SystemExit(f"{program} failed:\n{done.stdout}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def warm_up(workload: Workload) -> None:
    """Run both programs once on few rows, so that Spark's jars and the Python packages are in the page cache."""
    few = {"rows": 40_000, "files": 12, "keys": 1000}  # fewer files leave no batch without rows to be measured
    run(workload.ours, workload, 1, **few)
    run(workload.peer, workload, 1, **{**workload.peer_has, **few})


def compare(workload: Workload, rounds: int, scale: float, beside: Path | None = None) -> dict[str, Any]:
    """A workload's two programs in turns; ``beside``: ours, and that of another tree."""
    if beside is not None:
        workload = attrs.evolve(workload, peer=workload.ours, peer_has={}, least=0)
    runs: dict[str, list[dict[str, Any]]] = {"ours": [], "peer": []}
    programs: dict[str, Callable[[], dict[str, Any]]] = {
        "ours": partial(run, workload.ours, workload, scale),
        "peer": partial(run, workload.peer, workload, scale, beside or Path(), **workload.peer_has),
    }
    for number in range(min(rounds, workload.most_rounds)):
        for name in sorted(programs, reverse=number % 2 == 1):
            runs[name].append(programs[name]())
    pairs = zip(runs["ours"], runs["peer"], strict=True)
    ratios = [ours[workload.figure] / peer[workload.figure] for ours, peer in pairs]
    return {"workload": attrs.asdict(workload), "runs": runs, "ratios": ratios}


def line(result: dict[str, Any]) -> str:
    """A row of the table."""
    workload, ratios = Workload(**result["workload"]), result["ratios"]
    ours, peer = (median(one[workload.figure] for one in result["runs"][who]) for who in ("ours", "peer"))
    ratio = median(ratios)
    good = ratio <= workload.least if workload.less_is_better else ratio >= workload.least
    met = "" if not workload.least else "met" if good else "not met"
    range_ = f"{min(ratios):.2f}-{max(ratios):.2f}"
    tail = ""
    if workload.figure == "batch_ms":
        late = (f"{median(one['batch_ms_95'] for one in runs):,.0f}" for runs in result["runs"].values())
        tail = ", 95th percentiles " + ", ".join(late)
    return (
        f"{workload.name:<5} {workload.what:<38} {ours:>11,.0f} {peer:>11,.0f}  {ratio:>7.2f} ({range_:<11}) "
        f"{workload.least or '':>5} {met:<7}   beside {workload.peer}{tail}"
    )


def plot(results: Sequence[dict[str, Any]], path: Path) -> None:
    """The ratios as bars, if matplotlib is installed."""
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
    wanted = {name: one["workload"]["least"] for name, one in zip(names, results, strict=True)}
    wanted = {name: least for name, least in wanted.items() if least}
    axes.scatter(list(wanted.values()), list(wanted), color="black", marker="|", s=200, label="wanted")
    axes.set(xscale="log", xlabel="times as many events a second (Q, B9, B12, W1: times as long, as large)")
    axes.axvline(1, color="grey", linewidth=0.5)
    axes.invert_yaxis()
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Run the selected workloads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads, such as B1,B5")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=1, help="small runs of the first workload's programs, dropped")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many rows")
    parser.add_argument("--beside", type=Path, help="another tree, whose program is the peer")
    said = parser.parse_args()
    wanted = [one for one in WORKLOADS if not said.only or one.name in said.only.split(",")]
    OUT.mkdir(parents=True, exist_ok=True)
    print(f"{'':<5} {'':<38} {'ours':>11} {'peer':>11}  {'ratio':>7} {'':<13} wanted")
    for _ in range(said.warmup):
        warm_up(wanted[0])
    results = []
    for workload in wanted:
        results.append(compare(workload, said.rounds, said.scale, said.beside))
        print(line(results[-1]), flush=True)
        (OUT / "results.json").write_text(json.dumps(results, indent=1))
    plot(results, OUT / "ratios.png")


if __name__ == "__main__":
    main()
