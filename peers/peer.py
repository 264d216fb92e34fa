"""A peer: another implementation of the same rules, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:  # the environment of Beam Python has no Hypothesis
    from hypothesis.strategies import SearchStrategy

BUILT = Path(__file__).parents[1] / "build" / "peers"
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=240m",
    "-XX:+UseSerialGC",
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
)
"""A process is short: it gains nothing from the second compiler. Its output has answers only: warnings of the JVM go to stderr."""
Case = dict[str, Any]
"""Options and a script, as JSON. Times are in microseconds."""
Row = Mapping[str, Any]
"""A row of an answer.

``stream``: rows of a stream affect each other, so only its first row without a counterpart is a difference. ``place``: the row's identity and
position in its stream. The rest is compared.
"""


@attrs.frozen
class Peer:
    """Differences between peers.

    Attributes:
        name: the name of its folder.
        title: its name in docs/peers.md.
        version: the version of its ``pom.xml``.
        cases: what draws its cases.
        given: a case as its program gets it.
        here: the answer of beamish.
        there: the answer of the peer, from what its program wrote.
        facts: of a case and a pair of rows, one of which may be None: what ``decided.json`` refers to.
        groups: the facts by which undecided differences are grouped.
        kinds: of a case: by what cases are counted.
        smaller: of a case: simpler ones.
        command: its program, if it is not ``Peer.java``.
        processes: how many run beside each other; None: one per core.
        together: a process gets so many cases, and a blank line at their end; 0: it answers each by itself.
        program: the folder of its ``Peer.java``, if that of another peer.
        predicted: of a case: the answer of the peer by its own rules, where they differ from ours. None: they never do.
    """

    name: str
    title: str
    version: str
    cases: SearchStrategy[Case]
    given: Callable[[Case], Case]
    here: Callable[[Case], list[Row]]
    there: Callable[[Case, Mapping[str, Any]], list[Row]]
    facts: Callable[[Case, Row | None, Row | None], Mapping[str, Any]]
    groups: Sequence[str]
    kinds: Callable[[Case], Iterable[str]]
    smaller: Callable[[Case], Iterator[Case]]
    command: Callable[[], list[str | Path]] | None = None
    processes: int | None = None
    together: int = 0
    program: str = ""
    predicted: Callable[[Case], list[Row]] | None = None


class PeerError(Exception):
    """The program of a peer cannot be started, or has ended."""


@attrs.define
class Program:
    """The running program of a peer: answers cases, a line each."""

    peer: Peer
    process: subprocess.Popen[str]

    @classmethod
    @contextmanager
    def start(cls, peer: Peer) -> Iterator[Program]:
        """Start the program that ``make test-peers`` has built; it ends with the block."""
        command = _java(peer.program or peer.name) if peer.command is None else peer.command()
        program = cls(peer, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        try:
            yield program
        finally:
            program.process.terminate()
            program.process.wait()

    def answers(self, cases: Sequence[Case]) -> Iterator[list[Row]]:
        """The peer's answers, in order."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        lines = [json.dumps(self.peer.given(case)) + "\n" for case in cases]
        if self.peer.together:
            lines.append("\n")
        threading.Thread(target=_write, args=(self.process.stdin, lines), daemon=True).start()
        for case in cases:
            line = self.process.stdout.readline()
            if not line:
                raise PeerError(f"the program of {self.peer.name} ended with {self.process.wait()}")
            answer = json.loads(line)
            yield [failed(answer)] if "failed" in answer else self.peer.there(case, answer)


def _java(name: str) -> list[str | Path]:
    built = BUILT / name
    if not (built / "classes" / "Peer.class").exists():
        raise PeerError(f"{built} is empty: build it with make test-peers PEERS={name}")
    options = [*JAVA_OPTIONS, "-cp", f"{built}/lib/*:{built}/classes"]
    return [Path(os.environ["JAVA_HOME"]) / "bin" / "java", *options, "Peer"]


def failed(answer: Mapping[str, Any]) -> Row:
    """The only row of an answer if the peer's program failed."""
    return {"stream": ["failed"], "place": [], "failed": answer["failed"]}


def _write(to: IO[str], lines: Sequence[str]) -> None:
    for line in lines:
        to.write(line)
    to.flush()
