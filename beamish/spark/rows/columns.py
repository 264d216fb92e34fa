"""The DataFrame's columns as the pipeline names them, checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.errors import ColumnError, PipelineError
from beamish.kernels.reserved import EVENT_TIME, EVENT_TIME_EXPRESSION, WATERMARK
from beamish.options import Options
from beamish.spark.rows.types import arrow_type
from beamish.watermarks import Punctuated

_RESERVED = (EVENT_TIME, WATERMARK, EVENT_TIME_EXPRESSION)


@attrs.frozen
class NamedRows:
    """A DataFrame and a pipeline that names its columns.

    Attributes:
        df: the rows; has a column for every expression of the pipeline.
        options: the pipeline, with names only.
        schema: the columns' Arrow types, but for those no pipeline can read.
    """

    df: DataFrame
    options: Options
    schema: pa.Schema


def column(name: str) -> Column:
    """The top-level column of that name, dots and all."""
    return F.col(f"`{name.replace('`', '``')}`")


def name_columns(options: Options, df: DataFrame) -> NamedRows:
    """Give the pipeline's Column expressions names, and check the columns it reads that only Spark knows about.

    Raises:
        ColumnError: a column is missing, twice there, or of a type that cannot be used.
    """
    for name in _RESERVED:
        if name in df.columns:
            raise ColumnError(f"column {name!r}: beamish uses this name itself; rename the column")
    named: list[str] = []
    for key in options.keys:
        name = key if isinstance(key, str) else _name_of(df, key)
        df = df if isinstance(key, str) else df.withColumn(name, key)
        named.append(name)
    event_time = options.event_time
    if isinstance(event_time, Column):
        name = _name_of(df, event_time, EVENT_TIME_EXPRESSION)
        df, event_time = df.withColumn(name, event_time), name
    options = attrs.evolve(options, keys=tuple(named), event_time=event_time)
    options.check()
    _check_event_time(df, "event_time", event_time)
    if isinstance(options.watermark, Punctuated):
        _check_event_time(df, "Punctuated", options.watermark.column)
    return NamedRows(df, options, _schema(df, options))


def _name_of(df: DataFrame, expression: Column, other: str | None = None) -> str:
    """The name Spark gives an expression; ``other`` where it is not simply a column."""
    name = df.select(expression).columns[0]
    if str(expression) == f"Column<'{name}'>" and name in df.columns:
        return name
    if other is not None:
        return other
    if name in df.columns:
        raise ColumnError(
            f"key_by({expression}): would be named {name!r}, as a column of the DataFrame is; give it another name with "
            f".alias({name + '_key'!r})"
        )
    return name


def _check_event_time(df: DataFrame, where: str, name: str) -> None:
    found = [field for field in df.schema if field.name == name]
    if not found:
        raise ColumnError(f"{where}({name!r}): there is no column {name!r}; the columns are {df.columns}")
    if len(found) > 1:
        raise ColumnError(f"{where}({name!r}): there are {len(found)} columns {name!r}; rename or drop the others")
    type_ = found[0].dataType
    if isinstance(type_, t.TimestampNTZType):
        raise ColumnError(
            f"{where}({name!r}): a timestamp_ntz has no time zone, so it is not an instant; .cast('timestamp') takes it to "
            "be in the session's (spark.sql.session.timeZone)"
        )
    if not isinstance(type_, t.TimestampType):
        raise ColumnError(
            f"{where}({name!r}): must be a timestamp, is {type_.simpleString()}; use F.to_timestamp for text, "
            "F.timestamp_seconds or F.timestamp_millis for numbers"
        )
    if "spark.watermarkDelayMs" in found[0].metadata:
        raise PipelineError(
            f"{where}({name!r}): the column has a withWatermark of its own, which would hold back the pipeline's (Spark "
            "follows the least); take it out. Where a join needs it, give the pipeline a copy without the mark: "
            f"df.withColumn({name!r}, F.timestamp_micros(F.unix_micros({name!r})))"
        )


def _schema(df: DataFrame, options: Options) -> pa.Schema:
    fields: list[tuple[str, pa.DataType]] = []
    needed = set(_needed(options, df))
    for field in df.schema:
        if field.name == EVENT_TIME_EXPRESSION:
            continue
        if field.name in needed and df.columns.count(field.name) > 1:
            raise ColumnError(f"column {field.name!r} is there twice: rename or drop one of them")
        type_ = arrow_type(field.dataType)
        if type_ is None and field.name in needed:
            raise ColumnError(
                f"column {field.name!r}: Spark cannot hand a {field.dataType.simpleString()} to Python; cast or drop it"
            )
        if type_ is not None:
            fields.append((field.name, type_))
    return pa.schema(fields)


def _needed(options: Options, df: DataFrame) -> Iterator[Any]:
    yield from options.keys
    yield from options.window.columns if options.window else ()
    everything = options.with_dropped
    for accumulation in options.accumulations.values():
        everything = everything or accumulation.inputs is None
        yield from accumulation.inputs or ()
    if everything:
        yield from df.columns
