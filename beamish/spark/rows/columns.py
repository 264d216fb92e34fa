"""The DataFrame's columns as the pipeline names them, checked: marks of Spark's own ``withWatermark``, and input forms (``forms.py``).

The user's own ``withWatermark`` on columns of a DataFrame. A query has one watermark, and Spark rejects a second ``withWatermark``
("Redefining watermark is disallowed"; docs/spark-notes.md#one-watermark). So if the column that a policy follows has an equivalent mark,
the query's watermark is used as it is; any other mark is rejected.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.contract.relation import Ledger, SlotSemantics
from beamish.durations import Duration
from beamish.errors import ColumnError, PipelineError
from beamish.forms import BEFORE_AND_AFTER, MOST_TIMES, NO_ROWS, WORDS, FromChangelog, FromPanes, InputForm
from beamish.kernels.column_names import (
    EVENT_TIME_EXPRESSION,
    PREFIX,
    SIGN,
    has_no_event_time,
    is_reserved,
    quoted,
    respelled,
)
from beamish.kernels.field_paths import missing_words, parts_of, path_of, resolved, spelled
from beamish.kernels.key_sets import GROUPING_ID
from beamish.source import Source
from beamish.spark.rows.schemas import Given, arrow_type, spark_type
from beamish.spark.runtime.observation import count_skipped
from beamish.watermarks import Watermark

MARK = "spark.watermarkDelayMs"
"""The metadata of a column with a watermark: its delay, in milliseconds."""


_PANES = "beamish.panes"
OF_PANES = {MARK: 0, _PANES: True}
"""The mark of the ``timestamp`` of panes, which identifies the event time for Spark's own operators; and that it belongs to panes."""

_UNMARKED = {"beamish.unmarked": True}
"""Replaces metadata that consisted of marks only: Spark 4.0 cannot remove a column's metadata."""


def marks_of(given: Given) -> dict[str, int]:
    """The delays of the columns with a ``withWatermark``, in milliseconds."""
    return {field.name: int(field.metadata[MARK]) for field in given.schema if MARK in field.metadata}


def without_stale_marks(given: Given) -> Given:
    """The rows without marks of another query: files keep them, but their watermark is not in this query."""
    marks, df = marks_of(given), given.df
    if not marks or not given.streaming or _has_watermark(df):
        return given
    for field in given.schema:
        if field.name in marks:
            kept = {name: value for name, value in field.metadata.items() if name not in OF_PANES}
            df = df.withMetadata(field.name, kept or _UNMARKED)
    return Given.asked(df)


def _has_watermark(df: DataFrame) -> bool:
    """Whether the plan of the rows has a ``withWatermark``, by Spark's explain."""
    with redirect_stdout(io.StringIO()) as text:
        df.explain(extended=True)
    return "EventTimeWatermark" in text.getvalue()


def check_marks(given: Given, policy: Watermark, followed: str | None) -> None:
    """Check that a query over these rows can have a policy's watermark.

    Args:
        given: the rows.
        policy: the watermark policy.
        followed: the column that it follows; None: it follows the clock.

    Raises:
        PipelineError: the rows have another watermark already.
    """
    marks = marks_of(given)
    if followed is None or not marks or not given.streaming:
        return
    if any(_PANES in field.metadata for field in given.schema):
        raise PipelineError(
            f"event_time({followed!r}) on a stream of another pipeline's panes: they are emitted when the watermark has passed them, so all would be late; use first.then(second).apply(df), or write the panes to a table and read it in a query of its own"
        )
    if followed not in marks:
        (name, *_) = marks
        raise PipelineError(
            f"column {name!r} has a withWatermark of its own, and the pipeline's watermark follows {followed!r}: Spark allows one per query (Redefining watermark is disallowed); remove it, or put it on {followed!r}: "
            f"df.withWatermark({followed!r}, ...)"
        )
    if policy.max_future is not None:
        raise PipelineError(
            f"event_time({followed!r}): the column has a withWatermark of its own, which has no max_future; leave one of the two out"
        )
    delay_us = marks[followed] * 1000
    if delay_us != policy.delay.us:
        raise PipelineError(
            f"event_time({followed!r}): the column has a withWatermark of its own, {str(Duration(delay_us))!r}, and the pipeline has {str(policy.delay)!r}; a query has one watermark: remove it, or use the same delay in both: "
            f"df.withWatermark({followed!r}, {str(policy.delay)!r})"
        )


_IMAGE = PREFIX + "image"


def unfolded(form: InputForm | None, df: DataFrame) -> DataFrame:
    """Data rows with ``SIGN``; unchanged without a form.

    Raises:
        ColumnError: a column is missing, or of the wrong type.
        PipelineError: panes that replace each other without retractions.
    """
    if isinstance(form, FromPanes):
        return _panes(form, df)
    if not isinstance(form, FromChangelog):
        return df
    form.check_columns(df.columns)
    if form.format == "debezium":
        return _images(form, df)
    if form.format == "diff":
        return _diffs(form, df)
    said, words = WORDS[form.format]
    sign = F.coalesce(_lookup(F.col(said), words), _error(form, said))
    return df.withColumn(SIGN, sign.cast("tinyint")).drop(said)


def _lookup(names: Column, words: Mapping[str, int]) -> Column:
    return F.create_map(*(F.lit(one) for pair in words.items() for one in pair))[names]


def _error(form: FromChangelog, name: str, type_: str = "int") -> Column:
    """Raise an error instead of returning a value, for unknown values of this column."""
    before, is_shown, after = form.wrong(name, "").partition("''")
    shown = F.coalesce(F.col(name).cast("string"), F.lit("null")) if is_shown else F.lit("")
    return F.raise_error(F.concat(F.lit(before), shown, F.lit(after))).cast(type_)


def _diffs(form: FromChangelog, df: DataFrame) -> DataFrame:
    type_ = df.schema["_diff"].dataType
    if not isinstance(type_, t.IntegralType):
        raise ColumnError(f"{form.call()[1:]}: '_diff' is {type_.simpleString()}; it must be a whole number: cast it")
    counts = F.col("_diff").between(
        -MOST_TIMES, MOST_TIMES
    )  # false or null: the cast would wrap around without ANSI mode
    times = F.when(counts, F.col("_diff").cast("int")).otherwise(_error(form, "_diff"))
    signs = F.array_repeat(F.signum(times).cast("tinyint"), F.abs(times))
    return df.withColumn(SIGN, F.explode(signs)).drop("_diff")


def _images(form: FromChangelog, df: DataFrame) -> DataFrame:
    before, after = (df.schema[name].dataType for name in ("before", "after"))
    structs = isinstance(after, t.StructType) and isinstance(before, t.StructType)
    if not structs or before.simpleString() != after.simpleString():  # a cast of one to the other may change values
        raise ColumnError(
            f"{form.call()[1:]}: 'before' is {before.simpleString()}, 'after' is {after.simpleString()}; they must be structs of "
            "the same columns and types, such as F.from_json gives"
        )
    tombstone = F.col("op").isNull() & F.col("before").isNull() & F.col("after").isNull()
    op = F.when(F.col("op").isin(list(BEFORE_AND_AFTER)) | tombstone, F.col("op"))
    for word in NO_ROWS:
        op = op.when(F.col("op") == word, F.raise_error(F.lit(form.wrong("op", word))).cast("string"))
    op = op.otherwise(_error(form, "op", "string"))
    images = []
    for place, (name, sign) in enumerate((("before", -1), ("after", 1))):
        needed = op.isin([word for word, needs in BEFORE_AND_AFTER.items() if needs[place]])
        missing = F.raise_error(form.no_image).cast(after)
        image = F.when(F.col(name).isNull(), missing).otherwise(F.col(name).cast(after))
        images.append(F.when(needed, F.struct(F.lit(sign).cast("tinyint").alias(SIGN), image.alias("data"))))
    rows = count_skipped(df, tombstone).select(F.explode(F.array_compact(F.array(*images))).alias(_IMAGE))
    return rows.select(f"{_IMAGE}.data.*", f"{_IMAGE}.{SIGN}")


def _panes(form: FromPanes, df: DataFrame) -> DataFrame:
    form.check_columns(df.columns)
    known = Ledger.read(df.schema["pane"].metadata)
    if known is not None and known.follows is SlotSemantics.REPLACING:
        raise PipelineError(
            "from_panes() of panes of a pipeline that is accumulating: each has all rows so far and none is retracted, so totals over them would count rows again; store those of an .accumulating_and_retracting() pipeline, or use the live panes of a batch: bm.live(df)"
        )
    sign = F.when(F.col("pane.kind") == "RETRACTION", -1).otherwise(1).cast("tinyint")
    bounds = {"window": [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]}
    names = [name for name in df.columns if name not in ("pane", "dropped")]
    columns = [one for name in names for one in bounds.get(name, [F.col(quoted(name))])]
    return df.where("pane.kind <> 'DROPPED'").select(*columns, sign.alias(SIGN))


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


def nested(field: pa.Field) -> Column:
    """A column of a relation, which may stand for a nested field (``kernels/field_paths.py``)."""
    path = path_of(field)
    return column(field.name) if path is None else F.col(".".join(map(quoted, path)))


def with_named_fields(df: DataFrame, schema: pa.Schema) -> DataFrame:
    """The rows with the nested fields of a schema as columns."""
    fields = {field.name: nested(field) for field in schema if path_of(field) is not None}
    return df.withColumns(fields) if fields else df


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
    given = _plain(_spelled(_unfolded(source, given), source, asked))
    given = without_stale_marks(_in_sets(source, given))
    named: list[str] = []
    for key in source.keys:
        _check_replayed(given, "key_by", key)
        name = key if isinstance(key, str) else _name_of(given, key)
        given = given if isinstance(key, str) else _with_column(given, name, key)
        named.append(name)
    event_time, rows = source.event_time, given
    _check_replayed(given, "event_time", event_time)
    if isinstance(event_time, Column):
        name = _name_of(given, event_time, EVENT_TIME_EXPRESSION)
        given, event_time = _with_column(given, name, event_time), name
    source = attrs.evolve(source, keys=tuple(named), event_time=event_time)
    if source.watermark is not None and not has_no_event_time(event_time):
        followed = source.watermark.followed_column(event_time)
        given = _with_times(given, [event_time, followed])
        _check_event_time(given, "event_time", event_time)
        if followed not in (None, event_time):
            _check_event_time(given, type(source.watermark).__name__, followed)
        check_marks(given, source.watermark, followed)
    _check_case(rows, (*named, *asked))
    paths = filter(None, (parts_of(name) for name in (*named, *asked) if name not in rows.columns))
    roots = filter(None, (spelled(rows.columns, root) for root, *_ in paths))
    needed = set(rows.columns if whole_rows else (*named, *asked, *roots))
    return NamedRows(given.df, source, _schema(rows, needed), marks_of(given))


def _with_times(given: Given, names: Sequence[str | None]) -> Given:
    """The rows with times that are nested fields as columns: the event time, and the one that moves the watermark."""
    for name in dict.fromkeys(names):
        field = resolved(_types(given), name, any_case=not given.case_matters)
        if field is not None:
            schema = t.StructType([*given.schema, t.StructField(field.name, spark_type(field.type))])
            given = attrs.evolve(given, df=given.df.withColumn(field.name, nested(field)), schema=schema)
    return given


def _check_case(given: Given, names: Sequence[str]) -> None:
    """Check that nested fields are spelled as Spark needs them (ColumnError: one is not)."""
    for name in names if given.case_matters else ():
        if resolved(_types(given), name) is not None and resolved(_types(given), name, any_case=False) is None:
            raise ColumnError(
                f"{name!r} names fields in another case, and spark.sql.caseSensitive is on: spell them as they are"
            )


def _types(given: Given) -> pa.Schema:
    """The columns that Spark can pass to Python."""
    types = ((field.name, arrow_type(field.dataType)) for field in given.schema)
    return pa.schema([(name, type_) for name, type_ in types if type_ is not None])


_RANDOM = re.compile(
    r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id|input_file_\w+|now|current_time)\(",
    re.IGNORECASE,
)
_CLOCKS = ("Now", "CurrentTime")
"""Spark's classes of ``now()`` and ``current_time()``: deterministic for Spark, though a replayed batch reads the clock again. Others, such as
``current_timestamp()``, are the batch's time, which is in the offset log."""


def is_deterministic(df: DataFrame, expression: Column) -> bool:
    """Whether Spark computes the same values again; under Spark Connect, whose client has no plan, by the names of functions."""
    if type(df).__module__.startswith("pyspark.sql.connect"):
        return _RANDOM.search(str(expression)) is None
    selected: Any = df.select(expression)
    expressions = selected._jdf.queryExecution().analyzed().expressions()  # noqa: SLF001 - Spark does not show it otherwise
    return all(one.deterministic() and not _reads_a_clock(one) for one in _listed(expressions))


def _reads_a_clock(expression: Any) -> bool:
    """Whether one of ``_CLOCKS`` is in an expression of Spark's."""
    is_clock = expression.getClass().getSimpleName() in _CLOCKS
    return is_clock or any(map(_reads_a_clock, _listed(expression.children())))


def _listed(of_scala: Any) -> list[Any]:
    return [of_scala.apply(i) for i in range(of_scala.size())]


NOT_REPLAYED = (
    "nondeterministic: a batch that is replayed after a restart would have other values, while state and table have the first; "
    "compute it from the rows' columns (current_timestamp() is repeated)"
)


def _check_replayed(given: Given, call: str, expression: Any) -> None:
    """Check that replayed rows of a stream have the same keys and times (PipelineError: an expression is nondeterministic)."""
    if (
        isinstance(expression, Column)
        and given.streaming
        and not given.declared
        and not is_deterministic(given.df, expression)
    ):
        raise PipelineError(
            f"{call}({expression}) on a stream: {NOT_REPLAYED}, such as F.pmod(F.hash('id'), F.lit(8)), or store it with the rows"
        )


def _unfolded(source: Source, given: Given) -> Given:
    """The data rows of rows with an input form."""
    if source.form is None:
        return given
    if given.declared:
        raise PipelineError(f"{source.form!r} with apply(schema=...): changes need Spark calls; leave schema out")
    return Given.asked(unfolded(source.form, given.df))


def _in_sets(source: Source, given: Given) -> Given:
    """The rows for each key set of their source (ColumnError: there is a column ``grouping_id``)."""
    sets = source.key_sets
    if sets is None:
        return given
    if given.declared:
        raise PipelineError(f"key_by({sets!r}) with apply(schema=...): key sets need Spark calls; leave schema out")
    sets.check_free(given.columns)
    df = given.df.withColumn(GROUPING_ID, F.explode(F.array(*(F.lit(one).cast("bigint") for one in sets.ids))))
    for name in (name for name in sets.columns if name in df.columns):
        is_in_set = column(GROUPING_ID).bitwiseAND(F.lit(sets.bit(name)).cast("bigint")) == 0
        df = df.withColumn(name, F.when(is_in_set, column(name)))
    return Given.asked(df)


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


def plain_texts(df: DataFrame, schema: t.StructType) -> DataFrame:
    """Texts with a collation as plain ones: in scripts and streams texts are equal only if all their characters are."""
    collated = {one.name: one.dataType for one in schema if " collate " in one.dataType.simpleString()}
    known = {name: arrow for name, type_ in collated.items() if (arrow := arrow_type(type_)) is not None}
    return df.withColumns({name: column(name).cast(spark_type(one)) for name, one in known.items()}) if known else df


def _plain(given: Given) -> Given:
    df = plain_texts(given.df, given.schema)
    return given if df is given.df else Given.asked(df)


def _name_of(given: Given, expression: Column, other: str | None = None) -> str:
    """The name Spark gives an expression; ``other`` if it is not a plain column."""
    if given.declared:
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
        why = missing_words(_types(given), name)
        raise ColumnError(f"{where}({name!r}): there is no column {name!r}; the columns are {given.columns}{why}")
    if len(found) > 1:
        raise ColumnError(f"{where}({name!r}): there are {len(found)} columns {name!r}; rename or drop the others")
    _check_alone(given, name)
    type_ = found[0].dataType
    if isinstance(type_, t.TimestampNTZType):
        raise ColumnError(
            f"{where}({name!r}): a timestamp_ntz has no time zone, so it is not an instant; .cast('timestamp_ltz') takes it to "
            "be in the session's (spark.sql.session.timeZone)"
        )
    if not isinstance(type_, t.TimestampType):
        raise ColumnError(
            f"{where}({name!r}): must be a timestamp, is {type_.simpleString()}; use F.to_timestamp for text, "
            "F.timestamp_seconds or F.timestamp_millis for numbers, .cast('timestamp_ltz') for a date, which is its midnight"
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
