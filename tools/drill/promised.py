"""What is promised of a query whose batches Spark cut in another way: what the engine gives in process for these batches, row by row."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from beamish.local import Variation, _Leaf, _Node
from beamish.script.events import Step
from beamish.script.tables import script_rows
from beamish.spark.compile.stream import needs_reports
from beamish.testing import TestStream
from tools.drill.cuts import Batch, cuts
from tools.drill.pipelines import DRILLED
from tools.drill.query import Query

_SHARDS = 2


class _Given:
    """A source whose rows and watermark are known batch by batch."""

    def __init__(self, steps: Iterator[tuple[pa.Table | None, int | None]]) -> None:
        self._steps = steps
        self.watermark_us: int | None = None

    def step(self, step: Step, rows: None) -> pa.Table | None:
        table, self.watermark_us = next(self._steps)
        return table


def promised(query: Query) -> list[dict[str, Any]] | None:
    """The rows that the batches of its checkpoint give; None: its shards have watermarks that the checkpoint does not note.

    Number ``sequence`` of a row depends on the order of a shard's rows, which cuts decide.
    """
    flow = DRILLED[query.name].pipeline.flow.completed
    names, batches = [source.name for source in flow.sources], cuts(query)
    script = TestStream()
    for batch in batches:
        for name, chunks in zip(names, batch.chunks, strict=True):
            if given := [row for chunk in chunks for row in _rows(query, chunk, name)]:
                script = script.add(given, input=name)
    rows = script_rows(flow, script.events)
    bound = flow.bind(rows.schemas, shards=_SHARDS)
    if needs_reports(bound) or bound.needs_clock:
        return None
    root = _Node(bound, Variation(round_trip=True))
    leaves = {
        name: _Given(_steps(query, batches, number, name, rows.tables[name])) for number, name in enumerate(names)
    }
    for node in root.nodes():
        node._inputs = [leaves[one._source.name] if isinstance(one, _Leaf) else one for one in node._inputs]  # type: ignore[misc]  # noqa: SLF001
    return [row for _ in batches for row in root.step(Step(), None).to_pylist()]


def _steps(
    query: Query, batches: Sequence[Batch], number: int, name: str | None, tables: Sequence[pa.Table]
) -> Iterator[tuple[pa.Table | None, int | None]]:
    left = iter(tables)
    for batch in batches:
        has_rows = any(_rows(query, chunk, name) for chunk in batch.chunks[number])
        yield next(left) if has_rows else None, batch.watermark_ms * 1000 or None


def _rows(query: Query, chunk: int, side: str | None) -> list[dict[str, Any]]:
    lines = (query.rows / f"{chunk:04}.json").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [{**row, "ts": dt.datetime.fromisoformat(row["ts"])} for row in rows if side in (None, row["side"])]
