"""Tables as the bytes of an Arrow IPC stream, and back."""

from __future__ import annotations

import pyarrow as pa

_THREADS_FROM = 1 << 20
"""From this size Arrow (de)compresses columns in parallel: for less, the overhead is larger."""


def to_bytes(table: pa.Table, *, compression: str | None = None) -> bytes:
    """Serialize a table, its schema's metadata included.

    Args:
        table: of any types; for a slice only its own rows are written.
        compression: "lz4" or "zstd"; None: none.
    """
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=table.nbytes >= _THREADS_FROM)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_bytes(data: bytes | pa.Buffer) -> pa.Table:
    """The table in the bytes of ``to_bytes``, without a copy."""
    buffer = pa.py_buffer(data) if isinstance(data, bytes) else data
    options = pa.ipc.IpcReadOptions(use_threads=buffer.size >= _THREADS_FROM)
    with pa.ipc.open_stream(buffer, options=options) as reader:
        return reader.read_all()
