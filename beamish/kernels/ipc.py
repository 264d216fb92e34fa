"""Tables as bytes: Arrow's IPC stream."""

from __future__ import annotations

import pyarrow as pa

COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""For bytes that are kept; what only travels is not worth compressing."""


def to_bytes(table: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    """A table as one stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_bytes(stream: bytes) -> pa.Table:
    """The table of a stream, over the bytes themselves."""
    with pa.ipc.open_stream(pa.py_buffer(stream)) as reader:
        return reader.read_all()
