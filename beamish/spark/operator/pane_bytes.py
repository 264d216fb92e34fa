"""Panes as Arrow bytes between an operator and its consumer: far cheaper than structs through pandas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from beamish.kernels.ipc import to_bytes
from beamish.spark.runtime.worker_memory import spare_memory

_MOST_ROWS = 100_000


def pieces(panes: pa.Table) -> Iterator[pa.Table]:
    """Batches of this many panes at most; none for no panes."""
    return (panes.slice(start, _MOST_ROWS) for start in range(0, panes.num_rows, _MOST_ROWS))


def panes_to_bytes(panes: pa.Table) -> list[bytes]:
    """Panes in pieces, each an Arrow IPC stream."""
    return [to_bytes(piece) for piece in pieces(panes)]


def panes_from_bytes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of Arrow IPC streams in the first column; for ``mapInArrow``."""
    spare_memory()
    for batch in batches:
        for stream in batch.column(0).drop_null():
            with pa.ipc.open_stream(stream.as_buffer()) as reader:
                yield from reader
