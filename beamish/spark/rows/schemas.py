"""Spark's types in Arrow's words and back; source schemas, read from Spark or declared by the user.

Timestamps are microseconds in UTC on both sides, whatever the session's time zone.

Source schemas, read from Spark or declared by the user. In a query function of a declarative pipeline Spark allows no calls. There the user
declares schema, number of shards, and whether it is a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from beamish.contract.relation import Ledger, Relation
from beamish.errors import ColumnError, OptionError
from beamish.kernels.column_names import quoted
from beamish.kernels.type_names import parsed_type

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
    """The Spark type of an Arrow type (ColumnError: Spark has no such type)."""
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


def is_on(spark: SparkSession, name: str) -> bool:
    """Whether a setting of the session, off by default, is on."""
    return str(spark.conf.get(name, "false")).lower() == "true"


def ddl(type_: t.DataType) -> str:
    """A type in SQL, the same under every ``spark.sql.timestampType``."""
    if isinstance(type_, t.StructType):
        return f"struct<{', '.join(f'{quoted(one.name)}: {ddl(one.dataType)}' for one in type_)}>"
    if isinstance(type_, t.ArrayType):
        return f"array<{ddl(type_.elementType)}>"
    if isinstance(type_, t.MapType):
        return f"map<{ddl(type_.keyType)}, {ddl(type_.valueType)}>"
    return "timestamp_ltz" if isinstance(type_, t.TimestampType) else type_.simpleString()


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


@attrs.frozen
class Given:
    """The rows of a source.

    Attributes:
        df: the rows.
        schema: their columns.
        streaming: whether they are a stream.
        case_matters: whether names are case-sensitive.
        declared: whether all this was declared, so that no Spark call may be made.
    """

    df: DataFrame
    schema: t.StructType
    streaming: bool
    case_matters: bool
    declared: bool = False

    @classmethod
    def asked(cls, df: DataFrame) -> Given:
        """Read from Spark."""
        return cls(df, df.schema, df.isStreaming, is_on(df.sparkSession, "spark.sql.caseSensitive"))

    def renamed(self, names: Mapping[str, str]) -> Given:
        """The same rows with renamed columns: the new name by the old one."""
        if not names:
            return self
        fields = [
            t.StructField(names.get(one.name, one.name), one.dataType, one.nullable, one.metadata)
            for one in self.schema
        ]
        return attrs.evolve(self, df=self.df.withColumnsRenamed(dict(names)), schema=t.StructType(fields))

    @property
    def columns(self) -> list[str]:
        """The column names."""
        return self.schema.names

    def alike(self, name: str) -> list[str]:
        """The columns that Spark resolves this name to."""
        if self.case_matters:
            return [other for other in self.columns if other == name]
        return [other for other in self.columns if other.lower() == name.lower()]


@attrs.frozen
class DeclaredInputs:
    """Declared schemas, in place of Spark calls.

    Attributes:
        schemas: the columns of each source, by its name.
        streaming: whether they are streams.
    """

    schemas: Mapping[str | None, t.StructType]
    streaming: bool

    @classmethod
    def read(cls, schema: Any, shards: Any, streaming: Any) -> DeclaredInputs | None:
        """Read the declaration; None: nothing declared, so Spark is called (OptionError: it is incomplete, or a schema is invalid)."""
        if schema is None:
            if streaming is not None:
                raise OptionError(
                    f"apply(streaming={streaming!r}): without schema=... it is read from Spark; leave it out"
                )
            return None
        if not isinstance(streaming, bool) or shards is None:
            raise OptionError(
                f"apply(schema=..., shards={shards!r}, streaming={streaming!r}): without Spark calls all three are required, such as apply(df, schema='ts timestamp, team string', shards=8, streaming=True)"
            )
        named = schema if isinstance(schema, Mapping) else {None: schema}
        return cls({name: _read(one) for name, one in named.items()}, streaming)

    def of(self, name: str | None, df: DataFrame) -> Given:
        """The declaration for a source (OptionError: it is missing)."""
        if name not in self.schemas:
            raise OptionError(
                f"apply(schema=...): the schema of input {name!r} is missing; give each its own: schema={{{name!r}: 'ts timestamp, "
                "...', ...}"
            )
        return Given(df, self.schemas[name], self.streaming, case_matters=False, declared=True)


def _read(schema: Any) -> t.StructType:
    if isinstance(schema, t.StructType):
        return schema
    if not isinstance(schema, str):
        raise OptionError(
            f"apply(schema={schema!r}): must be a text such as 'ts timestamp, team string', or a StructType"
        )
    read = spark_type(parsed_type("apply(schema)", f"struct<{schema}>"))
    assert isinstance(read, t.StructType)  # noqa: S101 - a struct's
    return read
