"""The DataFrame's columns as the pipeline names them, checked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.errors import ColumnError
from beamish.kernels.quoting import quoted
from beamish.kernels.reserved import EVENT_TIME_EXPRESSION, PREFIX, is_reserved
from beamish.kernels.spelling import respelled
from beamish.source import Source
from beamish.spark.rows.marks import check_marks
from beamish.spark.rows.types import arrow_type


@attrs.frozen
class NamedRows:
    """A DataFrame and a source that names its columns.

    Attributes:
        df: the rows; has a column for every expression of the source.
        source: with names only.
        schema: the columns' Arrow types, but for those no pipeline can read.
    """

    df: DataFrame
    source: Source
    schema: pa.Schema


def column(name: str) -> Column:
    """The top-level column of that name, dots and all."""
    return F.col(quoted(name))


def name_columns(source: Source, df: DataFrame, asked: Sequence[str], *, whole_rows: bool) -> NamedRows:
    """Give the source's Column expressions names, and check the columns that are read.

    A column that is asked for in another spelling, of upper and lower case, is renamed to that, unless Spark tells them apart.

    Args:
        source: what its pipeline says.
        df: its rows.
        asked: the columns that its stage names beside.
        whole_rows: whether all columns are read.

    Raises:
        PipelineError, ColumnError: a column is missing, twice there, has a name of beamish's own, or is of a type that
            cannot be used.
    """
    for name in df.columns:
        if is_reserved(name):
            raise ColumnError(f"column {name!r}: names that begin with {PREFIX!r} are beamish's own; rename the column")
    df = _spelled(df, source, asked)
    named: list[str] = []
    for key in source.keys:
        name = key if isinstance(key, str) else _name_of(df, key)
        df = df if isinstance(key, str) else df.withColumn(name, key)
        named.append(name)
    event_time = source.event_time
    if isinstance(event_time, Column):
        name = _name_of(df, event_time, EVENT_TIME_EXPRESSION)
        df, event_time = df.withColumn(name, event_time), name
    source = attrs.evolve(source, keys=tuple(named), event_time=event_time)
    if source.watermark is not None:
        _check_event_time(df, "event_time", event_time)
        followed = source.watermark.followed_column(event_time)
        if followed not in (None, event_time):
            _check_event_time(df, type(source.watermark).__name__, followed)
        check_marks(df, source.watermark, followed)
    needed = set(df.columns if whole_rows else (*named, *asked))
    return NamedRows(df, source, _schema(df, needed))


def _spelled(df: DataFrame, source: Source, asked: Sequence[str]) -> DataFrame:
    if df.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true":
        return df
    followed = source.watermark.followed_column(None) if source.watermark is not None else None
    names = [name for name in (*source.keys, source.event_time, followed, *asked) if isinstance(name, str)]
    return df.withColumnsRenamed(respelled(df.columns, names))


def _name_of(df: DataFrame, expression: Column, other: str | None = None) -> str:
    """The name Spark gives an expression; ``other`` where it is not simply a column."""
    name = df.select(expression).columns[0]
    if str(expression) == f"Column<'{name}'>" and name in df.columns:
        return name
    if other is not None:
        return other
    for taken in _alike(df, name):
        raise ColumnError(
            f"key_by({expression}): would be named {name!r}, as the column {taken!r} of the DataFrame is; give it another name "
            f"with .alias({name + '_key'!r})"
        )
    return name


def _check_event_time(df: DataFrame, where: str, name: str) -> None:
    found = [field for field in df.schema if field.name == name]
    if not found:
        raise ColumnError(f"{where}({name!r}): there is no column {name!r}; the columns are {df.columns}")
    if len(found) > 1:
        raise ColumnError(f"{where}({name!r}): there are {len(found)} columns {name!r}; rename or drop the others")
    _check_alone(df, name)
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


def _schema(df: DataFrame, needed: Collection[str]) -> pa.Schema:
    fields: list[tuple[str, pa.DataType]] = []
    for field in df.schema:
        if field.name == EVENT_TIME_EXPRESSION:
            continue
        if field.name in needed:
            _check_alone(df, field.name)
        type_ = arrow_type(field.dataType)
        if type_ is None and field.name in needed:
            raise ColumnError(
                f"column {field.name!r}: Spark cannot hand a {field.dataType.simpleString()} to Python; cast or drop it"
            )
        if type_ is not None:
            fields.append((field.name, type_))
    return pa.schema(fields)


def _check_alone(df: DataFrame, name: str) -> None:
    """Check that Spark knows which column is meant."""
    alike = _alike(df, name)
    if alike.count(name) > 1:
        raise ColumnError(f"column {name!r} is there twice: rename or drop one of them")
    if len(alike) > 1:
        raise ColumnError(
            f"columns {alike} differ in case only, which Spark does not tell apart (spark.sql.caseSensitive): rename or drop "
            "one of them"
        )


def _alike(df: DataFrame, name: str) -> list[str]:
    """The columns that Spark takes for the one of this name."""
    if df.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true":
        return [other for other in df.columns if other == name]
    return [other for other in df.columns if other.lower() == name.lower()]
