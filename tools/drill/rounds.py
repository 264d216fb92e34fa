"""A round of the drill: queries that are left alone, and the same queries killed repeatedly."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from tools.drill.comparing import compare
from tools.drill.how import CLUSTER, LOCAL, How
from tools.drill.life import Life
from tools.drill.pipelines import write_rows
from tools.drill.query import Query
from tools.drill.report import Report

_KILLS_PER_CHUNK = 2
"""The maximum of a round; then its queries run to their ends."""


@attrs.frozen
class Limits:
    """When killing stops: at ``until`` on the monotonic clock, or after this many ``kills``."""

    until: float
    kills: int

    def left(self, kills: int) -> bool:
        """Whether there is time for more."""
        return kills < self.kills and time.monotonic() < self.until


@attrs.define
class Round:
    """One round.

    Attributes:
        names: of the pipelines.
        folder: for all of it.
        chance: draws all that is drawn.
        limits: those of the drill.
        report: what is counted.
        how: the queries are run.
    """

    names: Sequence[str]
    folder: Path
    chance: random.Random
    limits: Limits
    report: Report
    how: How

    def run(self) -> None:
        """Run, kill, compare."""
        write_rows(self.folder / "rows", self.chance, self.how.chunks)
        drawn = [self._draw(name) for name in self.names]
        alone, killed = (
            [attrs.evolve(query, folder=query.folder / which) for query in drawn] for which in ("alone", "killed")
        )
        left_alone = attrs.evolve(self.how, master=LOCAL)
        if self._until_done(alone, left_alone, kills=0) and self._until_done(
            killed, self.how, kills=_KILLS_PER_CHUNK * self.how.chunks
        ):
            for one, other in zip(alone, killed, strict=True):
                compare(one, other, self.report, in_order=self.how.master != CLUSTER)

    def _draw(self, name: str) -> Query:
        sink, source = self.chance.choice(self.how.sinks), self.chance.choice(self.how.sources)
        return Query(name, sink, source, self.folder / "rows", self.folder / name.replace(" ", "_"))

    def _until_done(self, queries: Sequence[Query], how: How, *, kills: int) -> bool:
        """Start them until all have run to their ends; return whether they have."""
        after, begun = "", self.report.kills

        def may() -> bool:
            return self.report.kills - begun < kills and self.limits.left(self.report.kills)

        while undone := [query for query in queries if not query.is_done]:
            life = Life(undone, self.folder / "log", self.report, how)
            wrong = life.live(self.chance, may, after)
            if wrong:
                self.report.say_wrong(", ".join(query.title for query in undone), wrong)
                return False
            after = life.killed_at
        return True
