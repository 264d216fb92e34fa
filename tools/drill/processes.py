"""Finding and killing the processes of a query."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import attrs


@attrs.frozen
class Process:
    """A process, as /proc has it."""

    id: int
    parent: int
    session: int
    command: str


def processes() -> list[Process]:
    """All processes."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        if state not in "ZX":
            found.append(Process(int(folder.name), int(parent), int(session), command))
    return found


def below(roots: Iterable[int], found: Iterable[Process]) -> list[Process]:
    """Those that are of the session of a root, or children of it or of each other, in any depth; not the roots."""
    known = set(roots)
    chosen: list[Process] = []
    while more := [one for one in found if one.id not in known and (one.parent in known or one.session in known)]:
        known |= {one.id for one in more}
        chosen += more
    return chosen


def _children(root: int) -> list[int]:
    """The children of a process."""
    try:
        return [int(one) for one in Path(f"/proc/{root}/task/{root}/children").read_text().split()]
    except OSError:
        return []  # it has ended


def kill(ids: Iterable[int]) -> None:
    """SIGKILL."""
    for one in ids:
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            continue


def kill_all(root: int, warm: int | None) -> None:
    """SIGKILL for a query's process, its JVM and its Python processes: those that a server forked (tests/warm) too."""
    kill(_children(root))  # at once: the JVM
    while of_it := below([root, *([warm] if warm else [])], processes()):
        kill([root, *(one.id for one in of_it)])
        time.sleep(0.02)
    kill([root])
    try:
        os.waitpid(root, 0)
    except ChildProcessError:
        return
