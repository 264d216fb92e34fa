"""How a query's rows were cut into batches, as its checkpoint says."""

from __future__ import annotations

import json
from pathlib import Path

from tools.drill.query import Query


def cuts(query: Query) -> list[str]:
    """For each batch that got new rows: its watermark, and what each source gave."""
    said: list[str] = []
    before: list[str] = []
    for path in sorted((query.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name)):
        _, about, *offsets = path.read_text().splitlines()
        given = [_given(query.checkpoint / "sources" / str(number), offset) for number, offset in enumerate(offsets)]
        if given != before:
            said.append(f"watermark {json.loads(about)['batchWatermarkMs']}, rows {given}")
        before = given
    return said


def _given(log: Path, offset: str) -> str:
    """What a source had given at this offset: chunks, or files."""
    told = json.loads(offset) if offset != "-" else {}
    if "logOffset" not in told:
        return str(told.get("chunk", ""))
    return str(sum(_files(log / str(number)) for number in range(told["logOffset"] + 1)))


def _files(path: Path) -> int:
    """How many files a batch of Spark's source of files has."""
    for one in (path, path.with_name(f"{path.name}.compact")):
        if one.exists():
            entries = [json.loads(line) for line in one.read_text().splitlines()[1:]]
            return sum(entry["batchId"] == int(path.name) for entry in entries)
    return 0
