"""Structs as JSON text, the same under every setting of the session.

Under ``spark.sql.legacy.timeParserPolicy=LEGACY`` ``to_json`` has other texts for instants and dates before October 1582 and for years
above 9999, but not for timestamps without a time zone. So it gets instants as such timestamps in UTC, which it formats, and the others as
text.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as t

_OPTIONS = {"ignoreNullFields": "false", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"}
_EPOCH = "timestamp_ntz'1970-01-01 00:00:00'"


def to_json(struct: Column, type_: t.DataType) -> Column:
    """A column of structs, arrays or maps as JSON: nulls are written, instants are in UTC, with microseconds.

    Args:
        struct: the column.
        type_: its type.
    """
    return F.to_json(_prepared(struct, type_), _OPTIONS)


def _prepared(value: Column, type_: t.DataType) -> Column:
    """A value whose times ``to_json`` writes as they should be (keys of maps excepted, which it writes as numbers)."""
    if not _has_times(type_):
        return value
    if isinstance(type_, t.TimestampType):
        return F.timestamp_add("MICROSECOND", F.unix_micros(value), F.expr(_EPOCH))
    if isinstance(type_, t.TimestampNTZType):
        return _local_text(value)
    if isinstance(type_, t.DateType):
        return _date_text(value)
    if isinstance(type_, t.ArrayType):
        element = type_.elementType
        return F.transform(value, lambda one: _prepared(one, element))
    if isinstance(type_, t.MapType):
        item = type_.valueType
        return F.transform_values(value, lambda _, one: _prepared(one, item))
    return F.when(value.isNotNull(), F.struct(*_fields(value, type_))) if isinstance(type_, t.StructType) else value


def _fields(struct: Column, type_: t.StructType) -> list[Column]:
    """The fields of a struct; by place, if their names differ in case only."""
    names = [one.name for one in type_]
    if len({name.lower() for name in names}) < len(names):
        names = [f"_{at}" for at, _ in enumerate(type_)]
        struct = struct.cast(
            t.StructType([t.StructField(*one) for one in zip(names, (one.dataType for one in type_), strict=True)])
        )
    fields = zip(names, type_, strict=True)
    return [_prepared(struct.getField(name), one.dataType).alias(one.name) for name, one in fields]


def _has_times(type_: t.DataType) -> bool:
    match type_:
        case t.ArrayType():
            return _has_times(type_.elementType)
        case t.MapType():
            return _has_times(type_.valueType)
        case t.StructType():
            return any(_has_times(one.dataType) for one in type_)
        case _:
            return isinstance(type_, t.DateType | t.TimestampType | t.TimestampNTZType)


def _local_text(time: Column) -> Column:
    """A timestamp without a time zone, such as 2024-01-01T00:00:00.000000."""
    text = time.cast("string")
    whole = F.translate(F.split_part(text, F.lit("."), F.lit(1)), " ", "T")
    return F.concat(whole, F.lit("."), F.rpad(F.split_part(text, F.lit("."), F.lit(2)), 6, "0"))


def _date_text(date: Column) -> Column:
    """A date, such as 2024-01-01, +10000-01-01 or -0001-01-01."""
    year = F.year(date)
    sign = F.when(year < 0, "-").when(year > 9999, "+").otherwise("")
    digits = F.greatest(F.length(F.abs(year).cast("string")), F.lit(4))
    return F.concat(
        *[sign, F.lpad(F.abs(year).cast("string"), digits, F.lit("0")), F.lit("-"), _padded(F.month(date), 2)],
        *[F.lit("-"), _padded(F.day(date), 2)],
    )


def _padded(number: Column, digits: int) -> Column:
    return F.lpad(number.cast("string"), digits, "0")
