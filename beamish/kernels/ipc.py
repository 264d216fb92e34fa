"""Tables as the bytes of an Arrow IPC stream, and back."""

from __future__ import annotations

import pyarrow as pa


def to_bytes(table: pa.Table, *, compression: str | None = None) -> bytes:
    """The bytes of a table, its schema's metadata included.

    Args:
        table: of any types; a slice writes only its own rows.
        compression: "lz4" or "zstd"; None: none.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_bytes(data: bytes | pa.Buffer) -> pa.Table:
    """The table of bytes that ``to_bytes`` made, without copying them."""
    with pa.ipc.open_stream(pa.py_buffer(data) if isinstance(data, bytes) else data) as reader:
        return reader.read_all()
