"""A round of the drill: some queries that are left alone, and the same killed again and again."""

from __future__ import annotations

import datetime as dt
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import attrs
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tools.drill.cuts import cuts
from tools.drill.how import CLUSTER, LOCAL, How
from tools.drill.life import Life
from tools.drill.pipelines import DRILLED, lasting, write_rows
from tools.drill.promised import promised
from tools.drill.query import Query
from tools.drill.report import Report

_KILLS_PER_CHUNK = 2
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
                self._compare(one, other)

    def _draw(self, name: str) -> Query:
        sink, source = self.chance.choice(self.how.sinks), self.chance.choice(self.how.sources)
        return Query(name, sink, source, self.folder / "rows", self.folder / name.replace(" ", "_"))

    def _until_done(self, queries: Sequence[Query], how: How, *, kills: int) -> bool:
        """Start them until all have come to their ends; whether they have."""
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

    def _compare(self, alone: Query, killed: Query) -> None:
        """What came out of both."""
        self.report.compared[killed.title] += 1
        came, of_alone = _came(killed), _came(alone)
        self.report.rows[killed.title] += len(came)
        if self.how.master == CLUSTER:
            came, of_alone = _ranked(came), _ranked(of_alone)
        wrong = _differences("left alone", of_alone, came)
        if wrong and cuts(alone) != cuts(killed):
            self.report.cut[killed.title] += 1
            one, other = next(pair for pair in zip_longest(cuts(alone), cuts(killed)) if pair[0] != pair[1])
            print(f"{killed.title}: cut in another way: {other}, left alone {one}", flush=True)
            if not (DRILLED[killed.name].by_clock or (rows := promised(killed)) is None):
                wrong = _differences("in process", _bare(rows), _bare(came))
            else:
                wrong = []
        if wrong:
            noted = [f"{query.folder.name}: {batch}" for query in (alone, killed) for batch in cuts(query)]
            self.report.say_wrong(killed.title, "\n".join([*wrong, *noted]))


def _differences(what: str, whole: Sequence[Any], came: Sequence[Any]) -> list[str]:
    """Lines about rows that are missing, and others that came."""
    missing, more = (Counter(map(repr, rows)) for rows in (whole, came))
    both = missing & more
    missing, more = missing - both, more - both
    if not (missing or more):
        return []
    return [
        f"of {len(whole)} rows ({what}) {missing.total()} are missing, {more.total()} came that are others",
        *(f"- {row}" for row in sorted(missing)[:6]),
        *(f"+ {row}" for row in sorted(more)[:6]),
    ]


def _came(query: Query) -> list[dict[str, Any]]:
    """The rows that came out of a query, of which all is promised."""
    rows = [_plain(row) for row in ds.dataset(_files(query), format="parquet").to_table().to_pylist()]
    return lasting(rows) if DRILLED[query.name].by_clock else rows


def _plain(value: Any) -> Any:
    """A value with its times as text, however a file holds them."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).astimezone(dt.UTC).isoformat()
    return value


def _ranked(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows numbered within their key, since which key's come first is up to the order in which executors give what they read."""
    numbered, count = [], Counter[str]()
    for row in sorted(rows, key=lambda row: int(row["pane"]["sequence"]) if row.get("pane") else 0):
        number = count[key := repr(row.get("k"))]
        count[key] += 1
        numbered.append({**row, "pane": {**row["pane"], "sequence": number}} if row.get("pane") else row)
    return numbered


def _bare(rows: Sequence[dict[str, Any]]) -> list[Any]:
    """Rows without the numbers that the order of a shard's rows gives."""
    return [_plain({**row, "pane": {**row["pane"], "sequence": None}} if row.get("pane") else row) for row in rows]


def _files(query: Query) -> list[str]:
    """The files of what came out: those that the sink has noted."""
    if query.sink == "batches":
        return [str(path) for path in sorted(query.out.glob("[0-9]*")) if pq.read_metadata(path).num_rows]
    logs = (query.out / "_spark_metadata").glob("[0-9]*")
    noted = {json.loads(line)["path"] for log in logs for line in log.read_text().splitlines()[1:]}
    return sorted(path.removeprefix("file://") for path in noted)
