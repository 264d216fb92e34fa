"""The expected output of a query with other batch boundaries: that of the engine in process for these batches.

The checkpoint notes the query's watermark and the clock. Where each source has a watermark of its own (docs/spark-notes.md#watermark-reports), it is
computed anew from the rows: what a batch brings counts from the next one on.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from beamish.fusion.groups import FUSE
from beamish.instants import instant_us
from beamish.local import Variation, _Leaf, _Node
from beamish.script import Step, script_rows
from beamish.source import Source
from beamish.spark.compile.stream import needs_reports, needs_ticks
from beamish.testing import TestStream
from tools.drill.cuts import cuts, moving
from tools.drill.pipelines import DRILLED
from tools.drill.query import Query

_SHARDS = 2


class _Given:
    """A source whose rows and watermark are known batch by batch."""

    def __init__(self, steps: Iterator[tuple[pa.Table | None, int | None]]) -> None:
        self._steps = steps
        self.watermark_us: int | None = None

    def step(self, event: Step, rows: object) -> pa.Table | None:
        table, self.watermark_us = next(self._steps)
        return table


def promised(query: Query) -> list[dict[str, Any]]:
    """The rows that the batches of its checkpoint give.

    Number ``sequence`` of a row depends on the order of a shard's rows, which cuts decide.
    """
    flow = DRILLED[query.name].pipeline.flow.completed
    names, batches = [source.name for source in flow.sources], cuts(query)
    script = TestStream()
    for batch in batches:
        for name, chunks in zip(names, batch.chunks, strict=True):
            if given := _given(query, chunks, name):
                script = script.add(given, input=name)
    rows = script_rows(flow, script.events)
    bound = FUSE.grouped(flow.bind(rows.schemas, shards=_SHARDS))
    if not needs_ticks(bound):
        batches = moving(batches)
    own = needs_reports(bound) and len(names) > 1
    root = _Node(bound, Variation(round_trip=True))
    leaves = {}
    for number, source in enumerate(flow.sources):
        given_by = [_given(query, batch.chunks[number], source.name) for batch in batches]
        watermarks_us = _own_us(source, given_by) if own else [batch.watermark_ms * 1000 or None for batch in batches]
        left = iter(rows.tables[source.name])
        tables = [next(left) if given else None for given in given_by]
        leaves[source.name] = _Given(zip(tables, watermarks_us, strict=True))
    for node in root.nodes():
        node._inputs = [leaves[one._source.name] if isinstance(one, _Leaf) else one for one in node._inputs]  # type: ignore[misc]  # noqa: SLF001
    came = [row for batch in batches for row in root.step(Step(clock_us=batch.clock_us), {}).to_pylist()]
    columns = bound.stage.names_of_rows(bound.operator.takes)
    return [{name: row[name] for name in columns} for row in came] if columns else came


def _own_us(source: Source, given_by: Sequence[Sequence[dict[str, Any]]]) -> list[int | None]:
    """Where a source's own watermark is said to be at each batch, by the rows of the one before."""
    assert source.watermark is not None  # noqa: S101 - all of the drill's have one
    delay = dt.timedelta(microseconds=source.watermark.delay.us)
    said = [instant_us("ts", max(row["ts"] for row in rows) - delay) if rows else None for rows in given_by]
    return [None, *said[:-1]]


def _given(query: Query, chunks: Sequence[int], side: str | None) -> list[dict[str, Any]]:
    return [row for chunk in chunks for row in _rows(query, chunk, side)]


def _rows(query: Query, chunk: int, side: str | None) -> list[dict[str, Any]]:
    lines = (query.rows / f"{chunk:04}.json").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [{**row, "ts": dt.datetime.fromisoformat(row["ts"])} for row in rows if side in (None, row["side"])]
