"""The statistics and findings of a drill."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence

import attrs

from tools.drill.moments import Aim
from tools.drill.query import Query


@attrs.define
class Report:
    """Counts by pipeline and by moment.

    Attributes:
        seed: the drill's.
        kills: how often processes were killed, or parts of them.
        hits: kills by moment.
        missed: moments that were aimed at and did not come, as when a batch had no such thing.
        beside: by query: how often it was killed, whether it was aimed at or another in its process.
        starts: of processes.
        back: by moment: seconds from the start of a process after a kill then to the next thing that one of its queries noted.
        anew: checkpoints that were thrown away since their query was killed while it noted its first batch.
        compared: runs that were compared with one that was never killed, by query.
        rows: of those.
        cut: of these, runs whose batches were cut in another way (docs/reliability.md), compared with what these batches give in process.
        wrong: what was found.
    """

    seed: int
    rounds: int = 0
    kills: int = 0
    starts: int = 0
    begun: float = attrs.field(factory=time.monotonic)
    hits: Counter[str] = attrs.field(factory=Counter)
    missed: Counter[str] = attrs.field(factory=Counter)
    aimed: Counter[str] = attrs.field(factory=Counter)
    beside: Counter[str] = attrs.field(factory=Counter)
    back: dict[str, list[float]] = attrs.field(factory=lambda: defaultdict(list))
    anew: int = 0
    compared: Counter[str] = attrs.field(factory=Counter)
    rows: Counter[str] = attrs.field(factory=Counter)
    cut: Counter[str] = attrs.field(factory=Counter)
    wrong: list[tuple[str, str]] = attrs.field(factory=list)

    def count(self, target: Aim, queries: Sequence[Query]) -> None:
        """A kill, of a process with these queries."""
        self.kills += 1
        self.hits[target.moment] += 1
        self.aimed[target.query.title] += 1
        self.beside.update(query.title for query in queries if not query.is_done)

    @property
    def found(self) -> int:
        """Number of findings."""
        return len(self.wrong)

    def say_wrong(self, query: str, what: str) -> None:
        """Add a finding."""
        self.wrong.append((query, what))
        print(f"WRONG, seed {self.seed}, round {self.rounds}: {query}: {what}", flush=True)

    def print_progress(self) -> None:
        """A line after each round."""
        print(
            f"{time.monotonic() - self.begun:6,.0f} s: {self.rounds} rounds, {self.kills} kills, "
            f"{sum(self.beside.values())} of queries, {self.starts} starts, {sum(self.compared.values())} runs compared, "
            f"{self.found} differences; {sum(self.cut.values())} of the runs were cut in another way",
            flush=True,
        )

    def print(self) -> None:
        """All of it."""
        self.print_progress()
        print(f"{self.anew} checkpoints begun anew: killed while the first batch was noted")
        print(f"\n{'killed at':28} {'kills':>6} {'missed':>7} {'seconds to go on':>17}")
        for moment in sorted({*self.hits, *self.missed}):
            took = sorted(self.back.get(moment, []))
            median = f"{took[len(took) // 2]:.1f}" if took else ""
            print(f"{moment:28} {self.hits[moment]:6} {self.missed[moment]:7} {median:>17}")
        print(
            f"\n{'pipeline, sink, source':44} {'aimed':>6} {'killed':>7} {'runs':>5} {'rows':>7} {'cut':>4} {'differences':>12}"
        )
        for query in sorted({*self.beside, *self.compared}):
            wrong = sum(one == query for one, _ in self.wrong)
            print(
                f"{query:44} {self.aimed[query]:6} {self.beside[query]:7} {self.compared[query]:5} {self.rows[query]:7,}"
                f" {self.cut[query]:4} {wrong:12}"
            )
