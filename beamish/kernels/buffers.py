"""Arrow columns, the numpy arrays under them, their sizes, and tables as bytes of an Arrow IPC stream; copied only where they must be.

``pa.array`` is avoided: for non-Arrow input it imports pandas if that is installed.

Sizes of values in bytes: strings by their UTF-8, others by the width of their type. Booleans take 1; lists and structs the sum of their
parts; nulls 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
"""Whole numbers, times in microseconds among them."""
Flags = NDArray[np.bool_]
Doubles = NDArray[np.float64]


NO_VALUE = np.iinfo(np.int64).min
"""No value: no timestamp, no lateness, no segment."""


NO_ENTRY = -1
"""No index."""


Numbers = NDArray[Any]


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type a column is processed in: dictionaries decoded, no large or view layouts, no half floats."""
    kind = pa.types
    if kind.is_dictionary(type_):
        return plain_type(type_.value_type)
    if kind.is_large_string(type_) or kind.is_string_view(type_):
        return pa.string()
    if kind.is_large_binary(type_) or kind.is_binary_view(type_) or kind.is_fixed_size_binary(type_):
        return pa.binary()
    if kind.is_float16(type_):
        return pa.float32()
    if kind.is_decimal(type_) and type_.bit_width < 128:
        return pa.decimal128(type_.precision, type_.scale)
    if _is_some_list(type_) and not kind.is_list(type_):
        return pa.list_(plain_type(type_.value_type))
    return type_


def plain(column: pa.Array) -> pa.Array:
    """Cast a column to its plain type."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return cast(column, plain_type(column.type))


def cast(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cast a column.

    Lists and structs are cast part by part: Arrow's own cast truncates null fields of structs in lists, even if the type stays the same.
    """
    if column.type == type_:
        return column
    if _is_some_list(column.type) and pa.types.is_list(type_):
        return list_column(cast(column.flatten(), type_.value_type), list_lengths(column), valid(column), type_)
    if pa.types.is_struct(column.type) and pa.types.is_struct(type_) and _names(column.type) == _names(type_):
        parts = [cast(part, field.type) for part, field in zip(column.flatten(), type_, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=column.is_null())
    return column.cast(type_)


def cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast a table to a schema with the same column names, by ``cast``."""
    if table.schema.equals(schema):
        return table
    table = table.combine_chunks()
    columns = [cast(column.combine_chunks(), field.type) for column, field in zip(table.columns, schema, strict=True)]
    return pa.table(columns, schema=schema) if columns else table


def large_schema(schema: pa.Schema) -> pa.Schema:
    """The columns with large texts and binaries, whose offsets have 64 bits, also within others."""
    return pa.schema([_large(field) for field in schema])


def _large(field: pa.Field) -> pa.Field:
    type_ = field.type
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        type_ = pa.large_string() if pa.types.is_string(type_) else pa.large_binary()
    elif pa.types.is_struct(type_):
        type_ = pa.struct([_large(one) for one in type_])
    elif pa.types.is_map(type_):
        type_ = pa.map_(_large(type_.key_field), _large(type_.item_field))
    elif pa.types.is_list(type_):
        type_ = pa.list_(_large(type_.value_field))
    return field.with_type(type_)


def _is_some_list(type_: pa.DataType) -> bool:
    kind = pa.types
    return bool(
        kind.is_list(type_)
        or kind.is_large_list(type_)
        or kind.is_fixed_size_list(type_)
        or kind.is_list_view(type_)
        or kind.is_large_list_view(type_)
    )


def _names(type_: pa.StructType) -> list[str]:
    return [field.name for field in type_]


def list_lengths(lists: pa.Array) -> NDArray[np.int64]:
    """The number of items in each list; 0 for null."""
    lengths = numbers(pc.list_value_length(lists)).astype(np.int64)
    present = valid(lists)
    return lengths if present is None else np.where(present, lengths, 0)


def is_whole(type_: pa.DataType) -> bool:
    """Whether values are integers in a buffer: integers, booleans, dates, times and durations."""
    kind = pa.types
    return bool(
        kind.is_integer(type_)
        or kind.is_boolean(type_)
        or kind.is_date(type_)
        or kind.is_timestamp(type_)
        or kind.is_time(type_)
        or kind.is_duration(type_)
    )


def is_fixed(type_: pa.DataType) -> bool:
    """Whether ``numbers`` supports it."""
    return is_whole(type_) or bool(pa.types.is_floating(type_))


def _dtype(type_: pa.DataType) -> np.dtype[Any]:
    letter = "f" if pa.types.is_floating(type_) else "u" if pa.types.is_unsigned_integer(type_) else "i"
    return np.dtype(f"<{letter}{type_.bit_width // 8}")


def _bits(buffer: pa.Buffer | None, offset: int, length: int) -> Flags:
    if buffer is None or length == 0:
        return np.zeros(length, dtype=bool)
    first = offset // 8
    octets = np.frombuffer(buffer, np.uint8)[first : (offset + length + 7) // 8]
    flags = np.unpackbits(octets, bitorder="little")[offset - 8 * first :][:length]
    return flags.view(bool)


def numbers(column: pa.Array) -> Numbers:
    """The values of a column that ``is_fixed`` (booleans as 0 and 1), one per row; undefined under a null."""
    length, data = len(column), column.buffers()[1]
    if pa.types.is_boolean(column.type):
        return _bits(data, column.offset, length).view(np.int8)
    dtype = _dtype(column.type)
    if data is None or length == 0:
        return np.zeros(length, dtype)
    return np.frombuffer(data, dtype, length, column.offset * dtype.itemsize)


def limbs(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The high (signed) and low (unsigned) 64 bits of decimal128 values; undefined under a null."""
    length, data = len(column), column.buffers()[1]
    if data is None or length == 0:
        return np.zeros(length, np.int64), np.zeros(length, np.uint64)
    words = np.frombuffer(data, "<u8", 2 * length, 16 * column.offset).reshape(-1, 2)
    return words[:, 1].view(np.int64), words[:, 0]


def valid(column: pa.Array) -> Flags | None:
    """Which rows are not null; None: all."""
    if column.null_count == 0:
        return None
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=bool)
    return _bits(column.buffers()[0], column.offset, len(column))


def offsets(column: pa.Array) -> NDArray[np.int32]:
    """Offsets of a list, string or binary column: int32, one more than there are rows."""
    data = column.buffers()[1]
    if data is None or len(column) == 0:
        return np.zeros(len(column) + 1, np.int32)
    return np.frombuffer(data, "<i4", len(column) + 1, 4 * column.offset)


def starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Start offsets of consecutive runs of ``lengths`` items."""
    begin: NDArray[np.int64] = np.cumsum(lengths) - lengths
    return begin


def _buffer(values: Numbers) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(values))


def _bitmap(flags: Flags | None) -> pa.Buffer | None:
    return None if flags is None or flags.all() else _buffer(np.packbits(flags, bitorder="little"))


def column_of(values: Numbers, type_: pa.DataType | None = None, present: Flags | None = None) -> pa.Array:
    """An Arrow column over numbers: of ``type_`` (default: int64, double or boolean, by the dtype).

    Args:
        values: one per row, as returned by ``numbers`` for the type.
        type_: a type that ``is_fixed``.
        present: False for nulls; None: no nulls.
    """
    if type_ is None:
        type_ = pa.float64() if values.dtype.kind == "f" else pa.bool_() if values.dtype.kind == "b" else pa.int64()
    if pa.types.is_boolean(type_):
        data = _buffer(np.packbits(values.astype(bool), bitorder="little"))
    else:
        data = _buffer(values.astype(_dtype(type_), copy=False))
    return pa.Array.from_buffers(type_, len(values), [_bitmap(present), data])


def decimal_column(
    high: NDArray[np.int64], low: NDArray[np.uint64], type_: pa.DataType, present: Flags | None = None
) -> pa.Array:
    """A decimal128 column from its high and low 64 bits."""
    words = np.empty((len(high), 2), np.uint64)
    words[:, 0] = low
    words[:, 1] = high.view(np.uint64)
    return pa.Array.from_buffers(type_, len(high), [_bitmap(present), _buffer(words)])


def list_column(
    items: pa.Array, lengths: NDArray[np.int64], present: Flags | None = None, type_: pa.DataType | None = None
) -> pa.Array:
    """A list column whose entries have ``lengths`` items each, in order; null where not ``present``."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError("more than 2,147,483,647 items in the lists of one column; use more shards")
    buffers = [_bitmap(present), _buffer(ends.astype(np.int32))]
    return pa.Array.from_buffers(type_ or pa.list_(items.type), len(lengths), buffers, children=[items])


def binary_column(values: Sequence[bytes | None]) -> pa.Array:
    """A binary column of Python values."""
    lengths = np.zeros(len(values) + 1, np.int64)
    lengths[1:] = [0 if value is None else len(value) for value in values]
    ends = np.cumsum(lengths)
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError("the accumulators of one shard take more than 2 GiB; use more shards")
    present = np.fromiter((value is not None for value in values), bool, len(values))
    data = pa.py_buffer(b"".join(value for value in values if value is not None))
    return pa.Array.from_buffers(pa.binary(), len(values), [_bitmap(present), _buffer(ends.astype(np.int32)), data])


def flags(values: Flags) -> pa.Array:
    """An Arrow boolean column."""
    return column_of(values, pa.bool_())


def struct_column(columns: Sequence[pa.Array], names: Sequence[str]) -> pa.Array:
    """A struct column of columns of equal length."""
    return pa.StructArray.from_arrays(list(columns), names=list(names))


def pick(column: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """The given rows; -1 gives null."""
    return column.take(column_of(rows, pa.int64(), rows >= 0))


def bytes_of_rows(table: pa.Table) -> Ints:
    """Bytes of each row: int64, one per row."""
    total = np.zeros(table.num_rows, dtype=np.int64)
    for column in table.columns:
        total += value_bytes(plain(column.combine_chunks()))
    return total


def value_bytes(column: pa.Array) -> Ints:
    """Bytes of each value of a column of a plain type: int64, one per row."""
    kind, type_ = pa.types, column.type
    rows = len(column)
    if kind.is_null(type_):
        return np.zeros(rows, dtype=np.int64)
    present: Ints = np.ones(rows, dtype=np.int64)
    if column.null_count:
        present = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    if kind.is_struct(type_):
        total = np.zeros(rows, dtype=np.int64)
        for i in range(type_.num_fields):
            total += value_bytes(plain(column.field(i)))
        return total * present
    if kind.is_map(type_):
        entry = pa.struct([("key", type_.key_type), ("value", type_.item_type)])
        return value_bytes(column.cast(pa.list_(entry)))
    if kind.is_list(type_):
        sums = np.concatenate([[0], np.cumsum(value_bytes(plain(column.flatten())))])
        lengths = list_lengths(column)
        begin = starts(lengths)
        within: Ints = sums[begin + lengths] - sums[begin]
        return within * present
    if kind.is_string(type_) or kind.is_binary(type_):
        return numbers(pc.fill_null(pc.binary_length(column), 0)).astype(np.int64)
    width: int = max(type_.bit_width // 8, 1)
    return present * width


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
