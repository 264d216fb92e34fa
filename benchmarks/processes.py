"""Resource usage of processes, from /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """All descendants of a process: number and name of each."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                name, _, rest = (folder / "stat").read_text().partition(" (")[2].rpartition(") ")
                parents.setdefault(int(rest.split()[1]), []).append((int(folder.name), name))
    below = parents.get(pid, [])
    while below:
        yield from below
        below = [one for number, _ in below for one in parents.get(number, [])]


def pythons(processes: Iterable[tuple[int, str]]) -> list[int]:
    """The Python ones among them."""
    return [pid for pid, name in processes if name.startswith(("python", "pyspark"))]


def pss_mb(pid: int) -> float:
    """The proportional memory of a process; 0 when it has ended."""
    return _kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") / 1024


def peak_mb(pid: int) -> float:
    """The peak memory of a process, shared memory included; 0 when it has ended."""
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmHWM:") / 1024


def javas(processes: Iterable[tuple[int, str]]) -> list[int]:
    """The Java ones among them."""
    return [pid for pid, name in processes if name == "java"]


def cpu_seconds(pids: Iterable[int] | None = None) -> float:
    """CPU time of processes, including ended children; None: this one and all below it."""
    ticks = 0
    for pid in (os.getpid(), *(pid for pid, _ in descendants(os.getpid()))) if pids is None else pids:
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _kilobytes(file: Path, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1])
    return 0
