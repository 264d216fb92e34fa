"""The DataFrame's columns under the pipeline's names, checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.errors import ColumnError, PipelineError
from beamish.kernels.quoting import quoted
from beamish.kernels.reserved import EVENT_TIME_EXPRESSION, PREFIX, has_no_event_time, is_reserved
from beamish.kernels.spelling import respelled
from beamish.source import Source
from beamish.spark.rows.forms import unfolded
from beamish.spark.rows.given import Given
from beamish.spark.rows.own_watermarks import check_marks, marks_of, without_stale_marks
from beamish.spark.rows.types import arrow_type


@attrs.frozen
class NamedRows:
    """A DataFrame, and its source with names only.

    Attributes:
        df: the rows, with a column for every expression of the source.
        source: with names only.
        schema: the columns' Arrow types, without unsupported ones.
        marks: the delays of the columns that have had a ``withWatermark``, in milliseconds.
    """

    df: DataFrame
    source: Source
    schema: pa.Schema
    marks: Mapping[str, int]


def column(name: str) -> Column:
    """The top-level column of this name, which may have dots."""
    return F.col(quoted(name))


def name_columns(source: Source, given: Given, asked: Sequence[str], *, whole_rows: bool) -> NamedRows:
    """Name the source's Column expressions, and check the columns that are read.

    A column requested in another case is renamed, unless Spark is case-sensitive.

    Args:
        source: as declared by the pipeline.
        given: its rows.
        asked: further columns that its stage names.
        whole_rows: whether all columns are read.

    Raises:
        PipelineError, ColumnError: a column is missing, ambiguous, has a reserved name, or an unsupported type.
    """
    for name in given.columns:
        if is_reserved(name):
            raise ColumnError(f"column {name!r}: names that begin with {PREFIX!r} are reserved; rename the column")
    given = _spelled(_unfolded(source, given), source, asked)
    given = without_stale_marks(given)
    named: list[str] = []
    for key in source.keys:
        name = key if isinstance(key, str) else _name_of(given, key)
        given = given if isinstance(key, str) else _with_column(given, name, key)
        named.append(name)
    event_time = source.event_time
    if isinstance(event_time, Column):
        name = _name_of(given, event_time, EVENT_TIME_EXPRESSION)
        given, event_time = _with_column(given, name, event_time), name
    source = attrs.evolve(source, keys=tuple(named), event_time=event_time)
    if source.watermark is not None and not has_no_event_time(event_time):
        _check_event_time(given, "event_time", event_time)
        followed = source.watermark.followed_column(event_time)
        if followed not in (None, event_time):
            _check_event_time(given, type(source.watermark).__name__, followed)
        check_marks(given, source.watermark, followed)
    needed = set(given.columns if whole_rows else (*named, *asked))
    return NamedRows(given.df, source, _schema(given, needed), marks_of(given))


def _unfolded(source: Source, given: Given) -> Given:
    """The data rows of rows with an input form."""
    if source.form is None:
        return given
    if given.told:
        raise PipelineError(f"{source.form!r} with apply(schema=...): changes need Spark calls; leave schema out")
    return Given.asked(unfolded(source.form, given.df))


def _with_column(given: Given, name: str, expression: Column) -> Given:
    """The rows with an expression as a column."""
    return Given.asked(given.df.withColumn(name, expression))


def _spelled(given: Given, source: Source, asked: Sequence[str]) -> Given:
    """Rename columns to the requested spelling."""
    if given.case_matters:
        return given
    followed = source.watermark.followed_column(None) if source.watermark is not None else None
    names = [name for name in (*source.keys, source.event_time, followed, *asked) if isinstance(name, str)]
    return given.renamed(respelled(given.columns, names))


def _name_of(given: Given, expression: Column, other: str | None = None) -> str:
    """The name Spark gives an expression; ``other`` if it is not a plain column."""
    if given.told:
        raise ColumnError(
            f"{expression}: with apply(schema=...) expressions are not resolved; add a column first (df.withColumn), declare it in the schema, and give its name"
        )
    name = given.df.select(expression).columns[0]
    if str(expression) == f"Column<'{name}'>" and name in given.columns:
        return name
    if other is not None:
        return other
    for taken in given.alike(name):
        raise ColumnError(
            f"key_by({expression}): would be named {name!r}, like the column {taken!r} of the DataFrame; give it another name "
            f"with .alias({name + '_key'!r})"
        )
    return name


def _check_event_time(given: Given, where: str, name: str) -> None:
    found = [field for field in given.schema if field.name == name]
    if not found:
        raise ColumnError(f"{where}({name!r}): there is no column {name!r}; the columns are {given.columns}")
    if len(found) > 1:
        raise ColumnError(f"{where}({name!r}): there are {len(found)} columns {name!r}; rename or drop the others")
    _check_alone(given, name)
    type_ = found[0].dataType
    if isinstance(type_, t.TimestampNTZType):
        raise ColumnError(
            f"{where}({name!r}): a timestamp_ntz has no time zone, so it is not an instant; .cast('timestamp') takes it to "
            "be in the session's (spark.sql.session.timeZone)"
        )
    if not isinstance(type_, t.TimestampType):
        raise ColumnError(
            f"{where}({name!r}): must be a timestamp, is {type_.simpleString()}; use F.to_timestamp for text, "
            "F.timestamp_seconds or F.timestamp_millis for numbers, .cast('timestamp') for a date, which is its midnight"
        )


def _schema(given: Given, needed: Collection[str]) -> pa.Schema:
    fields: list[tuple[str, pa.DataType]] = []
    for field in given.schema:
        if field.name == EVENT_TIME_EXPRESSION:
            continue
        if field.name in needed:
            _check_alone(given, field.name)
        type_ = arrow_type(field.dataType)
        if type_ is None and field.name in needed:
            raise ColumnError(
                f"column {field.name!r}: Spark cannot pass a {field.dataType.simpleString()} to Python; cast or drop it"
            )
        if type_ is not None:
            fields.append((field.name, type_))
    return pa.schema(fields)


def _check_alone(given: Given, name: str) -> None:
    """Check that a name is unambiguous for Spark."""
    alike = given.alike(name)
    if alike.count(name) > 1:
        raise ColumnError(f"column {name!r} is ambiguous: rename or drop one of them")
    if len(alike) > 1:
        raise ColumnError(
            f"columns {alike} differ in case only, which Spark ignores (spark.sql.caseSensitive): rename or drop "
            "one of them"
        )
