"""The life of one process with queries: from its start until it is killed, or its queries are done."""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from tools.drill.halting import forget_halt
from tools.drill.how import How
from tools.drill.moments import PARTS, Aim, aim
from tools.drill.processes import below, kill, kill_all, processes
from tools.drill.query import Query, forked
from tools.drill.report import Report

_STANDSTILL = 240.0
"""Seconds without anything new in any checkpoint."""
_PATIENCE = 120.0
"""Seconds that a moment is waited for."""
_NOT_EMPTY = "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"
"""Spark's refusal to go on where a query was killed while it noted its first batch (docs/reliability.md); it says what to do, which is done."""
_COMMANDS = {
    "workers": "pyspark.daemon",
    "source's process": "python_streaming_source_runner",
    "executor": "CoarseGrainedExecutorBackend",
}


@attrs.define
class Life:
    """One life.

    Attributes:
        queries: that are not done yet.
        log: the file for what it prints.
        report: what is counted.
        how: it is run.
        killed_at: the moment at which the drill ended it; "": it did not.
        parts_killed: what of it was killed before.
    """

    queries: Sequence[Query]
    log: Path
    report: Report
    how: How
    killed_at: str = ""
    parts_killed: list[str] = attrs.field(factory=list)
    _process: int = attrs.field(init=False, default=0)
    _begun: float = attrs.field(init=False, factory=time.monotonic)
    _noted: dict[Query, tuple[int, int]] = attrs.field(init=False, factory=dict)
    _moved: float = attrs.field(init=False, factory=time.monotonic)

    def live(self, chance: random.Random, may: Callable[[], bool], after: str = "") -> str:
        """Run until the end.

        Args:
            chance: draws when it is killed.
            may: whether it may be killed, or a part of it.
            after: the moment at which the life before was killed.

        Returns:
            what went wrong; "": nothing.
        """
        forget_halt()
        target = self._aim(chance, may)
        for query in self.queries:
            query.folder.mkdir(parents=True, exist_ok=True)
        self._look()
        sys.stdout.flush()
        self._process = forked(self.queries, self.log, self.how)
        self.report.starts += 1
        try:
            return self._watch(chance, may, target, after)
        finally:
            kill_all(self._process, self.how.warm)

    def _aim(self, chance: random.Random, may: Callable[[], bool]) -> Aim | None:
        undone = [query for query in self.queries if not query.is_done]
        if not undone or not may():
            return None
        target = aim(chance, undone, self.how)
        forget_halt()
        if target:
            target.prepare()
        return target

    def _watch(self, chance: random.Random, may: Callable[[], bool], target: Aim | None, after: str) -> str:
        looked = time.monotonic()
        come, since = target and target.waiting(), time.monotonic()
        while True:
            ended, status = os.waitpid(self._process, os.WNOHANG)
            if ended:
                if target:
                    self.report.missed[target.moment] += 1
                return self._verdict(os.waitstatus_to_exitcode(status))
            if target and come and come():
                if self._strike(target):
                    return ""
                target = None
            if target is None:
                target = self._aim(chance, may)
                come, since = target and target.waiting(), time.monotonic()
            if time.monotonic() > looked + 0.25:
                looked = time.monotonic()
                if target and (target.is_past() or looked - since > _PATIENCE):
                    self.report.missed[target.moment] += 1
                    target = None
                if self._look() and after:
                    self.report.back[after].append(looked - self._begun)
                    after = ""
            if time.monotonic() - self._moved > _STANDSTILL:
                return f"nothing moves for {_STANDSTILL:.0f} s: {self._tail()}"
            time.sleep(0.001 if target else 0.05)

    def _strike(self, target: Aim) -> bool:
        """Kill; whether it was the whole."""
        if target.moment in PARTS:
            found = below([self._process, *([self.how.warm] if self.how.warm else [])], processes())
            chosen = [one.id for one in found if _COMMANDS[target.moment] in one.command][
                : 1 if target.moment == "executor" else None
            ]
            if not chosen:
                self.report.missed[target.moment] += 1
                return False
            kill(chosen)
            self.parts_killed.append(target.moment)
        else:
            kill_all(self._process, self.how.warm)
            self.killed_at = target.moment
        self.report.count(target, self.queries)
        return bool(self.killed_at)

    def _look(self) -> bool:
        """Whether a query has progressed since the last check."""
        noted = {query: (query.last("offsets"), query.last("commits")) for query in self.queries}
        if noted == self._noted:
            return False
        first, self._noted = not self._noted, noted
        self._moved = time.monotonic()
        return not first

    def _verdict(self, code: int) -> str:
        """The meaning of its exit."""
        if code == 0 or self.parts_killed:
            return ""
        if _NOT_EMPTY in self._tail() and self.how.verifies:
            for query in self.queries:
                if query.last("offsets") < 0:
                    shutil.rmtree(query.checkpoint, ignore_errors=True)
                    self.report.anew += 1
            return ""
        return f"the process ended with {code}: {self._tail()}"

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-6000:] if self.log.exists() else ""
