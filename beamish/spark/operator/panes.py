"""Panes out of an operator: as Arrow bytes, or as rows of plain columns.

Bytes are far cheaper than structs through pandas. From plain columns Spark assembles structs itself, without another Python worker: a
struct becomes its fields and a validity flag, a timestamp its microseconds. Only such columns pass pandas unchanged; panes with lists or
maps are sent as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.kernels.buffers import to_bytes
from beamish.spark.runtime.workers import spare_memory

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


_PLAIN = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_date32,
    pa.types.is_decimal,
)


def are_plain(schema: pa.Schema) -> bool:
    """Whether panes of this schema can be sent as rows."""
    return all(_is_plain(field.type) for field in schema)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of such rows."""
    return pa.schema([(f"c{number}", type_) for number, type_ in enumerate(_types(schema))])


def panes_to_rows(panes: pa.Table) -> Iterator[pd.DataFrame]:
    """Panes in pieces, as such rows; the columns are Arrow's, which pandas passes unchanged."""
    columns = [leaf for name in panes.schema.names for leaf in _leaves(panes[name].combine_chunks())]
    for piece in pieces(pa.table(columns, plain_schema(panes.schema))):
        yield piece.to_pandas(types_mapper=pd.ArrowDtype)


def panes_of_rows(schema: pa.Schema, named: t.StructType) -> list[Column]:
    """The columns of panes from those of such rows.

    Args:
        schema: of the panes.
        named: the Spark schema of the panes, with metadata.
    """
    names = iter(plain_schema(schema).names)
    columns = [_of_rows(field.type, names) for field in schema]
    return [
        value.alias(field.name, metadata=field.metadata) if field.metadata else value.alias(field.name)
        for value, field in zip(columns, named, strict=True)
    ]


def _is_plain(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return all(_is_plain(field.type) for field in type_)
    return _is_instant(type_) or any(is_a(type_) for is_a in _PLAIN)


def _is_instant(type_: pa.DataType) -> bool:
    return pa.types.is_timestamp(type_) and type_.tz is not None


def _types(fields: pa.Schema | pa.StructType) -> Iterator[pa.DataType]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield pa.bool_()
            yield from _types(field.type)
        else:
            yield pa.int64() if _is_instant(field.type) else field.type


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_struct(values.type):
        yield pc.is_valid(values)
        for child in values.flatten():
            yield from _leaves(child)
    else:
        yield values.cast(pa.int64()) if _is_instant(values.type) else values


def _of_rows(type_: pa.DataType, names: Iterator[str]) -> Column:
    from beamish.spark.rows.columns import column

    if pa.types.is_struct(type_):
        there = column(next(names))
        return F.when(there, F.struct(*(_of_rows(field.type, names).alias(field.name) for field in type_)))
    value = column(next(names))
    return F.timestamp_micros(value) if _is_instant(type_) else value
