"""The batches of a query, with their rows and watermarks, from its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from tools.drill.query import Query


@attrs.frozen
class Batch:
    """A batch.

    Attributes:
        watermark_ms: the query's, 0: none.
        chunks: of each source the numbers of the chunks that it gave.
        clock_us: where its heartbeat moved the clock; None: it had none. It is another in every run.
    """

    watermark_ms: int
    chunks: tuple[tuple[int, ...], ...]
    clock_us: int | None = attrs.field(default=None, eq=False)


def moving(batches: Sequence[Batch]) -> list[Batch]:
    """Batches with rows, or with another watermark than the one before."""
    found: list[Batch] = []
    for batch in batches:
        if any(batch.chunks) or not found or batch.watermark_ms != found[-1].watermark_ms:
            found.append(batch)
    return found


def cuts(query: Query) -> list[Batch]:
    """The batches of a query."""
    found: list[Batch] = []
    given: dict[int, int] = {}
    for path in sorted((query.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name)):
        _, about, *offsets = path.read_text().splitlines()
        chunks, clock_us = [], None
        for number, offset in enumerate(offsets):
            told = json.loads(offset) if offset != "-" else {}
            before, now = given.get(number, 0), given.get(number, 0)
            if "chunk" in told:
                now = told["chunk"]
                chunks.append(tuple(range(before, now)))
            elif "logOffset" in told:
                now = told["logOffset"] + 1
                log = query.checkpoint / "sources" / str(number)
                chunks.append(tuple(chunk for one in range(before, now) for chunk in _files(log / str(one))))
            elif "tick" in told:
                now = told["clock_us"]
                clock_us = now if now != before else None
            given[number] = now
        found.append(Batch(json.loads(about)["batchWatermarkMs"], tuple(chunks), clock_us))
    return found


def _files(path: Path) -> Iterator[int]:
    """The chunks whose files Spark's file source recorded for a batch."""
    compact = path.with_name(f"{path.name}.compact")
    for line in (path if path.exists() else compact).read_text().splitlines()[1:]:
        entry = json.loads(line)
        if entry["batchId"] == int(path.name):
            yield int(Path(entry["path"]).stem)
