"""How a query's rows were cut into batches, and at which watermarks these ran: as its checkpoint notes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import attrs

from tools.drill.query import Query


@attrs.frozen
class Batch:
    """A batch.

    Attributes:
        watermark_ms: the query's, 0: none.
        chunks: of each source the numbers of the chunks that it gave.
    """

    watermark_ms: int
    chunks: tuple[tuple[int, ...], ...]


def cuts(query: Query) -> list[Batch]:
    """The batches of a query, one without rows only where the watermark has moved."""
    found: list[Batch] = []
    given: dict[int, int] = {}
    for path in sorted((query.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name)):
        _, about, *offsets = path.read_text().splitlines()
        watermark_ms = json.loads(about)["batchWatermarkMs"]
        chunks = []
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
            given[number] = now
        if any(chunks) or not found or watermark_ms != found[-1].watermark_ms:
            found.append(Batch(watermark_ms, tuple(chunks)))
    return found


def _files(path: Path) -> Iterator[int]:
    """The chunks whose files Spark's source of files noted for a batch."""
    compact = path.with_name(f"{path.name}.compact")
    for line in (path if path.exists() else compact).read_text().splitlines()[1:]:
        entry = json.loads(line)
        if entry["batchId"] == int(path.name):
            yield int(Path(entry["path"]).stem)
