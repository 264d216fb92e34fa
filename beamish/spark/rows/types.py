"""Spark types to Arrow types and back.

Timestamps are microseconds in UTC on both sides, whatever the session's time zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql import types as t

from beamish.contract.pane_identity import Ledger
from beamish.contract.relation import Relation
from beamish.errors import ColumnError

_SIMPLE: tuple[tuple[type[t.DataType], pa.DataType], ...] = (
    (t.BooleanType, pa.bool_()),
    (t.ByteType, pa.int8()),
    (t.ShortType, pa.int16()),
    (t.IntegerType, pa.int32()),
    (t.LongType, pa.int64()),
    (t.FloatType, pa.float32()),
    (t.DoubleType, pa.float64()),
    (t.StringType, pa.string()),
    (t.BinaryType, pa.binary()),
    (t.DateType, pa.date32()),
    (t.TimestampType, pa.timestamp("us", tz="UTC")),
    (t.TimestampNTZType, pa.timestamp("us")),
    (t.DayTimeIntervalType, pa.duration("us")),
    (t.NullType, pa.null()),
)


def arrow_type(type_: t.DataType) -> pa.DataType | None:
    """The Arrow type of a Spark type; None if Spark cannot pass it to Python."""
    if isinstance(type_, t.DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, t.ArrayType):
        element = arrow_type(type_.elementType)
        return element and pa.list_(element)
    if isinstance(type_, t.MapType):
        key, value = arrow_type(type_.keyType), arrow_type(type_.valueType)
        return key and value and pa.map_(key, value)
    if isinstance(type_, t.StructType):
        fields = [(field.name, arrow_type(field.dataType)) for field in type_]
        return None if any(kind is None for _, kind in fields) else pa.struct(fields)
    if isinstance(type_, (t.CharType, t.VarcharType)):
        return pa.string()
    return next((arrow for spark, arrow in _SIMPLE if type(type_) is spark), None)


def spark_type(type_: pa.DataType) -> t.DataType:
    """The Spark type of an Arrow type.

    Raises:
        ColumnError: Spark has no such type.
    """
    if pa.types.is_decimal(type_):
        return t.DecimalType(type_.precision, type_.scale)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return t.ArrayType(spark_type(type_.value_type))
    if pa.types.is_map(type_):
        return t.MapType(spark_type(type_.key_type), spark_type(type_.item_type))
    if pa.types.is_struct(type_):
        return spark_schema(pa.schema(list(type_)))
    if pa.types.is_timestamp(type_):
        return t.TimestampNTZType() if type_.tz is None else t.TimestampType()
    for spark, arrow in _SIMPLE:
        if type_ == arrow:
            return spark()
    raise ColumnError(f"type {type_}: Spark has no such type; cast the column, or give another result_type")


def pane_schema(gives: Relation, timestamp: Mapping[str, Any] = MappingProxyType({})) -> t.StructType:
    """The Spark schema of a stage's output; its relational meaning is metadata of the column ``pane``.

    Args:
        gives: the output.
        timestamp: the metadata of the column ``timestamp``.
    """
    metadata = {"pane": Ledger.of(gives).metadata, "timestamp": dict(timestamp)}
    fields = spark_schema(gives.schema)
    return t.StructType([t.StructField(one.name, one.dataType, metadata=metadata.get(one.name)) for one in fields])


def spark_schema(schema: pa.Schema) -> t.StructType:
    """The Spark schema of an Arrow schema; all columns are nullable."""
    return t.StructType([t.StructField(field.name, spark_type(field.type)) for field in schema])
