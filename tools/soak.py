"""Search all laws for counterexamples, for hours or days, in several processes: without Spark.

    python -m tools.soak [--budget 3600] [--processes 1] [--seed N] [--only twin]
    python -m tools.soak --law "tests.laws.test_engine_and_twin::test_engine_and_twin_agree_in_any_layout[chain]" --seed 7

The laws are the property tests of tests/laws and of tests/kinds/*/test_laws*.py: pipelines, scripts, shards, cuts and restarts are drawn, and the engine is compared with the
twin and with itself. A turn is one law with one seed. What is found is printed once: the law, the seed that finds it again, and the example,
shrunk; then the search goes on. Ends with 1 if something was found.

A script is an example in which the engine ran at least one.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import itertools
import logging
import multiprocessing
import os
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import is_hypothesis_test, seed

from beamish import local
from beamish.script import script_rows

ROOT = Path(__file__).parents[1]
_TURNS_PER_PROCESS = 200
"""Afterwards another process replaces it, so that nothing accumulates over days."""
_SAID_EVERY = 600.0
"""Seconds."""
_TOO_LONG = 1800.0
"""Seconds after which a turn that is still running is reported."""


@attrs.frozen
class Turn:
    """One law with one seed.

    Attributes:
        law: "module::name", and its parameters if it has some: names as they are, others by their number.
        number: the seed.
        found: what was found, with its traceback and the shrunk example; "": nothing.
        where: the line of code that failed, which tells one thing found from another.
        examples: how many were tried.
        scripts: in how many of them the engine ran.
    """

    law: str
    number: int
    found: str = ""
    where: str = ""
    examples: int = 0
    scripts: int = 0


def laws(name: str = "") -> list[str]:
    """All laws whose names contain this."""
    importlib.import_module("tests.conftest").load_settings()  # before any law is imported
    found = []
    for path in sorted(importlib.import_module("tests.budget").LAWS):
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for test, function in vars(module).items():
            is_its_own = getattr(function, "__module__", "") == module.__name__
            if test.startswith("test_") and is_its_own and is_hypothesis_test(function):
                found += [f"{module.__name__}::{test}{suffix}" for suffix in _parameters(function)]
    return [law for law in found if name in law and "test_search" not in law]


def _parameters(function: Any) -> dict[str, Mapping[str, Any]]:
    """The arguments of a parametrized law, by the suffix of its name."""
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    if not marks:
        return {"": {}}
    names = [[name.strip() for name in mark.args[0].split(",")] for mark in marks]
    values = [
        [value if len(of) > 1 else (value,) for value in mark.args[1]] for of, mark in zip(names, marks, strict=True)
    ]
    return {
        f"[{_label(chosen, number)}]": {
            name: value for of, one in zip(names, chosen, strict=True) for name, value in zip(of, one, strict=True)
        }
        for number, chosen in enumerate(itertools.product(*values))
    }


def _label(chosen: Iterable[tuple[Any, ...]], number: int) -> str:
    values = [*itertools.chain(*chosen)]
    return "-".join(values) if all(isinstance(value, str) for value in values) else str(number)


def take(law: str, number: int) -> Turn:
    """Try a law with a seed."""
    laws()
    name, _, parameters = law.partition("[")
    module, _, test = name.partition("::")
    function = getattr(importlib.import_module(module), test)
    arguments = _parameters(function)[f"[{parameters}" if parameters else ""]
    count = Counter[str]()
    found = where = ""
    try:
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="error"):
            patch.setattr(local, "script_rows", _marking(script_rows, count))
            if hasattr(function, "hypothesis"):  # a state machine does not have it
                patch.setattr(function.hypothesis, "inner_test", _counting(function.hypothesis.inner_test, count))
            if "monkeypatch" in inspect.signature(function).parameters:
                arguments = {**arguments, "monkeypatch": patch}
            seed(number)(function)(**arguments)
    except Exception as error:  # noqa: BLE001 - whatever a law ends in was found
        found, where = traceback.format_exc(), _where(error)
    return Turn(law, number, found, where, count["examples"], count["scripts"])


def _counting(inner: Callable[..., None], count: Counter[str]) -> Callable[..., None]:
    """The body of a law, counting its runs."""

    @functools.wraps(inner)
    def counted(*arguments: Any, **named: Any) -> None:
        count["examples"] += 1
        count["runs in this"] = 0
        try:
            inner(*arguments, **named)
        finally:
            count["scripts"] += count["runs in this"] > 0

    return counted


def _marking(begin: Callable[..., Any], count: Counter[str]) -> Callable[..., Any]:
    """The beginning of every run of a script, which records the run."""

    def marked(*arguments: Any, **named: Any) -> Any:
        count["runs in this"] += 1
        return begin(*arguments, **named)

    return marked


def _where(error: BaseException) -> str:
    """The last line of our code that ran, and the type of the error."""
    lines = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if str(ROOT) in frame.filename and ".venv" not in frame.filename
    ]
    return f"{type(error).__name__} in {lines[-1].filename}:{lines[-1].lineno}" if lines else repr(error)


@attrs.define
class Soak:
    """Progress and findings."""

    processes: int
    begun: float = attrs.field(factory=time.monotonic)
    said: float = attrs.field(factory=time.monotonic)
    turns: int = 0
    examples: int = 0
    scripts: int = 0
    found: Counter[tuple[str, str]] = attrs.field(factory=Counter)

    def run(self, chosen: Sequence[str], chance: random.Random, until: float) -> None:
        """Take turns until the time is up, each law equally often."""
        turns = _turns(chosen, chance)
        while time.monotonic() < until:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(
                self.processes, context, logging.disable, (logging.WARNING,), max_tasks_per_child=_TURNS_PER_PROCESS
            ) as pool:
                running = {
                    pool.submit(take, *turn): (turn, time.monotonic())
                    for turn in itertools.islice(turns, self.processes)
                }
                try:
                    self._go_on(pool, running, turns, until)
                except BrokenExecutor:
                    self._say("a process came to a sudden end", [turn for turn, _ in running.values()])

    def _go_on(
        self,
        pool: ProcessPoolExecutor,
        running: dict[Future[Turn], tuple[tuple[str, int], float]],
        turns: Iterator[tuple[str, int]],
        until: float,
    ) -> None:
        while running:
            done, _ = wait(running, timeout=60, return_when=FIRST_COMPLETED)
            for one in done:
                self._take_up(one.result())
                del running[one]
                if time.monotonic() < until:
                    turn = next(turns)
                    running[pool.submit(take, *turn)] = turn, time.monotonic()
            for turn, since in running.values():
                if time.monotonic() - since > _TOO_LONG:
                    self._say("goes on and on", [turn])
            if time.monotonic() - self.said > _SAID_EVERY:
                self.print()

    def _take_up(self, turn: Turn) -> None:
        self.turns, self.examples, self.scripts = (
            self.turns + 1,
            self.examples + turn.examples,
            self.scripts + turn.scripts,
        )
        if turn.found:
            self._say(turn.where, [(turn.law, turn.number)], turn.found)

    def _say(self, what: str, turns: Sequence[tuple[str, int]], more: str = "") -> None:
        """Report a finding, once per law."""
        self.found.update((law, what) for law, _ in turns)
        if any(self.found[law, what] == 1 for law, _ in turns):
            again = "\n".join(f'  python -m tools.soak --law "{law}" --seed {number}' for law, number in turns)
            print(f"FOUND: {what}\n{again}\n{more}", flush=True)

    def print(self) -> None:
        """A line."""
        self.said = time.monotonic()
        hours = (self.said - self.begun) / 3600
        print(
            f"{hours:8.2f} h: {self.turns:,} turns, {self.examples:,} examples, {self.scripts:,} scripts "
            f"({self.scripts / hours:,.0f} per hour in {self.processes} processes), {len(self.found)} found",
            flush=True,
        )


def _turns(chosen: Sequence[str], chance: random.Random) -> Iterator[tuple[str, int]]:
    """All laws in random order, repeatedly, each time with another seed."""
    while True:
        for law in chance.sample(chosen, len(chosen)):
            yield law, chance.getrandbits(32)


def main() -> int:
    """Search, or try one law with one seed."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--budget", type=float, default=3600, help="seconds; turns that were begun are ended")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument("--only", default="", help="laws with this in their names")
    parser.add_argument("--law", help="this law, once, with --seed")
    said = parser.parse_args()
    if said.law:
        turn = take(said.law, said.seed)
        print(turn.found or f"nothing in {turn.examples} examples")
        return int(bool(turn.found))
    chosen = laws(said.only)
    print(f"seed {said.seed}, {len(chosen)} laws", flush=True)
    soak = Soak(said.processes)
    soak.run(chosen, random.Random(said.seed), time.monotonic() + said.budget)  # noqa: S311 - it is no secret
    soak.print()
    return int(len(soak.found) > 0)


if __name__ == "__main__":
    sys.exit(main())
