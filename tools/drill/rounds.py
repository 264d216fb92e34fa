"""A round of the drill: some queries that are left alone, and the same killed again and again."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path

import attrs
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tools.drill.cuts import cuts
from tools.drill.life import Life
from tools.drill.pipelines import DRILLED, lasting, write_rows
from tools.drill.query import Query
from tools.drill.report import Report

_KILLS = 14
"""Of a round at the most; then its queries come to their ends."""


@attrs.frozen
class Limits:
    """When no more is killed: at ``until``, of the monotonic clock, or after so many ``kills``."""

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
        warm: the server that forks Python processes.
        cluster: whether the executors are processes of their own.
    """

    names: Sequence[str]
    folder: Path
    chance: random.Random
    limits: Limits
    report: Report
    warm: int | None
    cluster: bool

    def run(self) -> None:
        """Run, kill, compare."""
        write_rows(self.folder / "rows", self.chance)
        changelog = self.chance.random() < 0.5
        drawn = [self._draw(name) for name in self.names]
        alone, killed = ([attrs.evolve(query, folder=query.folder / which) for query in drawn] for which in ("alone", "killed"))
        if self._until_done(alone, changelog=changelog, kills=0) and self._until_done(killed, changelog=changelog, kills=_KILLS):
            for one, other in zip(alone, killed, strict=True):
                self._compare(one, other)

    def _draw(self, name: str) -> Query:
        sink, source = self.chance.choice(["files", "batches"]), self.chance.choice(["chunks", "chunks", "files"])
        return Query(name, sink, source, self.folder / "rows", self.folder / name.replace(" ", "_"))

    def _until_done(self, queries: Sequence[Query], *, changelog: bool, kills: int) -> bool:
        """Start them until all have come to their ends; whether they have."""
        after, begun = "", self.report.kills
        while undone := [query for query in queries if not query.is_done]:
            may = self.report.kills - begun < kills and self.limits.left(self.report.kills)
            life = Life(
                undone, self.folder / "log", self.report, self.warm, cluster=self.cluster and kills > 0, changelog=changelog
            )
            wrong = life.live(self.chance if may else None, after)
            if wrong:
                self.report.say_wrong(", ".join(query.title for query in undone), wrong)
                return False
            after = life.killed_at
        return True

    def _compare(self, alone: Query, killed: Query) -> None:
        """What came out of both."""
        whole, rows = came(alone), came(killed)
        self.report.compared[killed.title] += 1
        self.report.rows[killed.title] += len(rows)
        if whole == rows:
            return
        if cuts(alone) != cuts(killed):
            self.report.cut[killed.title] += 1
        missing, more = [row for row in whole if row not in rows], [row for row in rows if row not in whole]
        self.report.say_wrong(
            killed.title,
            "\n".join(
                [
                    f"of {len(whole)} rows {len(missing)} are missing, {len(more)} are others",
                    *(f"- {row}" for row in missing[:5]),
                    *(f"+ {row}" for row in more[:5]),
                    *(f"{query.folder.name}: {cut}" for query in (alone, killed) for cut in cuts(query)),
                ]
            ),
        )


def came(query: Query) -> list[str]:
    """What came out of a query, in order, of which all is promised."""
    rows = ds.dataset(_files(query), format="parquet").to_table().to_pylist()
    return sorted(map(repr, lasting(rows) if DRILLED[query.name].by_clock else rows))


def _files(query: Query) -> list[str]:
    """The files of what came out: those that the sink has noted."""
    if query.sink == "batches":
        return [str(path) for path in sorted(query.out.glob("[0-9]*")) if pq.read_metadata(path).num_rows]
    logs = (query.out / "_spark_metadata").glob("[0-9]*")
    noted = {json.loads(line)["path"] for log in logs for line in log.read_text().splitlines()[1:]}
    return sorted(path.removeprefix("file://") for path in noted)
