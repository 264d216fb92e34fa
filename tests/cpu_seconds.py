"""CPU seconds of a run per folder, beside their budgets in cpu_seconds.json: of the tests, and of all processes that they start.

A folder over its budget is listed at the end, and fails nothing: machines differ. So seconds are those of a reference machine: they are
divided by the time that a fixed loop takes here, relative to there. The loop runs after each folder, since a shared machine is slower at times.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import pytest

TESTS = Path(__file__).parent
BUDGETS = TESTS / "cpu_seconds.json"
"""Per tier: seconds of each folder, and ``aim``, of all together."""
REFERENCE_SECONDS = 0.0142
"""CPU time of ``_loop`` on the machine of the budgets (two cores, November 2026)."""
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """CPU seconds so far of this process, of its living descendants and of those that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(map(_seconds_of, _children("self")))


def _seconds_of(process: str) -> float:
    try:
        # The name, in parentheses, may have blanks. Then: state, 10 fields, user, system, ended children's user, system.
        fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:  # it has just ended
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS + sum(map(_seconds_of, _children(process)))


def _children(process: str) -> list[str]:
    """Process ids of the living children; none where the system is not Linux."""
    found: list[str] = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += thread.read_text("ascii").split()
        except OSError:
            continue
    return found


def slowness(loops: list[float]) -> float:
    """The median CPU time of a fixed loop, which ran all along the tests, relative to the reference machine."""
    return median(loops) / REFERENCE_SECONDS


def _loop() -> float:
    begun = time.process_time()
    counted: Counter[int] = Counter()
    for number in range(100_000):
        counted[number % 1_000] += number
    return time.process_time() - begun


def over_budget(seconds: dict[str, float], budgets: dict[str, float]) -> list[str]:
    """A line per folder that exceeds its budget, or has none."""
    return [
        f"{folder}: {found:.0f} CPU seconds, budget {budgets.get(folder, 0):.0f} ({BUDGETS.name})"
        for folder, found in sorted(seconds.items())
        if found >= 1 + budgets.get(folder, 0)
    ]


def folder_of(item: pytest.Item) -> str:
    """The folder of a test; ``tests`` of those in none."""
    path = item.path.relative_to(TESTS)
    return path.parts[0] if len(path.parts) > 1 else "tests"


class CpuSeconds:
    """Plugin that counts CPU seconds per folder and reports them at the end; a worker of pytest-xdist gives its own to the controller."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.loops: list[float] = []
        self._last = 0.0

    def pytest_collection_finish(self) -> None:
        self._last = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Any:
        result = yield
        folder = folder_of(item)
        if (
            nextitem is None or folder_of(nextitem) != folder
        ):  # to read the threads of a JVM costs as much as a small test
            now = cpu_seconds()
            self.seconds[folder] += max(now - self._last, 0)
            self.loops.append(min(_loop(), _loop()))
            self._last = cpu_seconds()
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["cpu_seconds"] = dict(self.seconds)
            session.config.workeroutput["loops"] = self.loops

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {})
        self.loops += output.get("loops", [])
        for folder, found in output.get("cpu_seconds", {}).items():
            self.seconds[folder] += found

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        if not self.loops:
            return
        factor = slowness(self.loops)
        seconds = {folder: found / factor for folder, found in self.seconds.items()}
        parts = ", ".join(
            f"{folder} {found:.0f}" for folder, found in sorted(seconds.items(), key=lambda one: -one[1]) if found >= 1
        )
        if not parts:
            return
        terminalreporter.write_line(f"CPU seconds: {parts}; sum {sum(seconds.values()):.0f}")
        tier = json.loads(BUDGETS.read_text("utf-8")).get(os.environ.get("HYPOTHESIS_PROFILE", "default"))
        if tier is None or config.option.file_or_dir or config.option.keyword:
            return
        terminalreporter.write_line(
            f"of a reference machine; here they are {factor:.2f} times as long. Aim: {tier['aim']}"
        )
        for line in over_budget(seconds, tier):
            terminalreporter.write_line(line)
