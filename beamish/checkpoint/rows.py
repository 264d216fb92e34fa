"""Windows as rows that words are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from beamish.checkpoint.question import Question
from beamish.instants import END_OF_TIME_US


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of ``kinds/window/window_facts.py``, and ``start`` and ``end``: their bounds, microseconds or numbers of rows."""
    window = table["window"].combine_chunks()
    starts, ends = (window.field(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    rows: list[dict[str, Any]] = table.drop_columns(["window"]).to_pylist()
    for row, start, end in zip(rows, starts, ends, strict=True):
        row["start"] = -END_OF_TIME_US if start is None else start
        row["end"] = END_OF_TIME_US if end is None else end
    return rows


def is_meant(row: Mapping[str, Any], question: Question) -> bool:
    """Whether a row is of a window that a question may mean."""
    start, end = question.span
    key = {**(row.get("key") or {}), "windowing": row.get("windowing")}
    return row["start"] < end and row["end"] > start and all(key[name] == value for name, value in question.key.items())
