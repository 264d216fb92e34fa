"""The rows that the inputs of a pipeline had in past micro-batches, as Python values, and the watermarks that they reported."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from beamish.addresses import printable
from beamish.errors import ColumnError, OptionError
from beamish.flow import Flow
from beamish.kernels.column_names import BATCH, REPORT, has_no_event_time, respelled
from beamish.kernels.field_paths import parts_of, spelled
from beamish.source import Source
from beamish.spark.compile.stream import union
from beamish.spark.replay.log import PastBatch
from beamish.spark.replay.sources import PastInputs
from beamish.spark.rows.columns import NamedRows, column, name_columns, unfolded
from beamish.spark.rows.schemas import Given
from beamish.spark.rows.watermark_column import reported_us
from beamish.spark.runtime.millis import watermark_us
from beamish.spark.statement import Statement, prepared

_AT_ONCE = 40
"""Batches that one Spark job reads."""
Where = Mapping[str | None, Mapping[str, Any]]
"""For each input the columns, and their values, of the rows to read; none: all rows."""


@attrs.frozen(eq=False)
class PastRows:
    """The rows of a pipeline's inputs.

    Attributes:
        rows: for each input, by the number of the batch.
        reported_us: for each input whose watermark was asked for, by batch, the greatest that its rows reported.
        columns: all columns of each input, also those that the pipeline does not read.
        read: those that it reads.
    """

    rows: Mapping[str | None, Mapping[int, Sequence[Mapping[str, Any]]]]
    reported_us: Mapping[str | None, Mapping[int, int]]
    columns: Mapping[str | None, Sequence[str]]
    read: Mapping[str | None, Collection[str]]


def read_rows(
    flow: Flow,
    inputs: PastInputs,
    batches: Sequence[PastBatch],
    where: Where,
    *,
    reports: bool,
    statement: Statement | None = None,
    named: Mapping[str | None, Collection[str]] = MappingProxyType({}),
) -> PastRows:
    """Read the rows of batches again.

    Args:
        flow: the pipeline's.
        inputs: reads the sources.
        batches: the batches.
        where: selects rows.
        reports: whether to compute the watermarks that rows reported.
        statement: of a query: what is computed before the pipeline.
        named: the columns that it names, by input.

    Raises:
        OptionError: the rows lack a column that the pipeline reads.
    """
    leaves = _leaves(flow)
    rows: dict[str | None, dict[int, list[Any]]] = {name: {} for name in leaves}
    reported: dict[str | None, dict[int, int]] = {name: {} for name in leaves}
    columns: dict[str | None, Sequence[str]] = {}
    read: dict[str | None, set[str]] = {}
    having = [batch for batch in batches if inputs.has_rows(batch)]
    for first in range(0, len(having), _AT_ONCE):
        frames: dict[str | None, list[DataFrame]] = {name: [] for name in leaves}
        watermarks: dict[str | None, list[DataFrame]] = {name: [] for name in leaves}
        for batch in having[first : first + _AT_ONCE]:
            made = inputs.frames(batch)
            given = made if statement is None else _before(statement, made)
            for name, leaf in leaves.items():
                read = read or _read(flow, leaves, given)
                columns[name] = made[name].columns
                number = F.lit(batch.number).alias(BATCH)
                if statement is None:
                    rows_of = leaf.rows(made[name], where.get(name, {}), read[name])
                else:
                    asked = {one.lower() for one in (*read[name], *named.get(name, ()))}
                    read[name] = {one for one in columns[name] if one.lower() in asked}
                    rows_of = leaf.selected(made[name], where.get(name, {})).select(*map(column, sorted(read[name])))
                frames[name].append(rows_of.withColumn(BATCH, number))
                report = leaf.reported_us(given[name], batch.clock_us) if reports else None
                if report is not None:
                    watermarks[name].append(report.withColumn(BATCH, number))
        for name in leaves:
            for batch_number, row in _collected(frames[name]):
                rows[name].setdefault(batch_number, []).append(row)
            for batch_number, row in _collected(watermarks[name]):
                us = None if row[REPORT] is None else watermark_us(row[REPORT] // 1000)
                if us is not None:
                    reported[name][batch_number] = us
    return PastRows(rows, reported, columns, read)


def read_initial(
    flow: Flow, frames: Mapping[str | None, Any], where: Where, read: Mapping[str | None, Collection[str]]
) -> dict[str | None, list[Any]]:
    """The initial rows of tables.

    Args:
        flow: the pipeline's.
        frames: a batch DataFrame for each table.
        where: selects rows.
        read: the columns that the pipeline reads.

    Raises:
        OptionError: not a batch DataFrame, or it lacks a column.
    """
    found: dict[str | None, list[Any]] = {}
    leaves = _leaves(flow)
    for name, df in frames.items():
        if not isinstance(df, DataFrame) or df.isStreaming:
            raise OptionError(
                f"replay(initial={printable(df)}): must be what apply(initial=...) got, a batch DataFrame, or a function that makes it from "
                "a session: def rates(spark): return spark.read..."
            )
        rows = leaves[name].rows(df, where.get(name, {}), read[name])
        found[name] = _plain(rows.toArrow()).to_pylist()
    return found


def _before(statement: Statement, made: Mapping[str | None, DataFrame]) -> Mapping[str | None, DataFrame]:
    """The rows of each input after WHERE, with what the statement computes of them."""
    named = {name: df for name, df in made.items() if name is not None}
    only, several = prepared(statement, made.get(None), named)
    return {name: several[name] for name in named} if only is None else {None: only}


def _leaves(flow: Flow) -> dict[str | None, _Leaf]:
    return {
        source.name: _Leaf(
            source, taker.stage.asks(taker.takes, number), taker.stage.asks_whole_rows(taker.takes, number)
        )
        for source, taker, number in flow.leaves
    }


def _read(
    flow: Flow, leaves: Mapping[str | None, _Leaf], made: Mapping[str | None, DataFrame]
) -> dict[str | None, set[str]]:
    """The columns that a pipeline reads of each input."""
    named = {name: leaf.named(made[name]) for name, leaf in leaves.items()}
    flow = flow.on_sources(lambda source: named[source.name].source)
    bound = flow.bind({name: rows.schema for name, rows in named.items()}, shards=1)
    found: dict[str | None, set[str]] = {}
    for below, of in zip(flow.flows, bound.flows, strict=True):
        for number, taken in enumerate(below.inputs):
            if isinstance(taken, Source):
                names = [*of.operator.reads(number), *map(str, taken.keys)]
                if taken.event_time is not None and not has_no_event_time(taken.event_time):
                    names.append(taken.event_time)
                roots = {spelled(named[taken.name].df.columns, (parts_of(name) or (name,))[0]) for name in names}
                found[taken.name] = {*names, *filter(None, roots)}
    return found


def _collected(frames: Sequence[DataFrame]) -> Iterator[tuple[int, dict[str, Any]]]:
    if frames:
        for row in _plain(union(frames).toArrow()).to_pylist():
            yield row.pop(BATCH), row


def _plain(table: pa.Table) -> pa.Table:
    """A table whose instants are in UTC."""
    fields = [
        pa.field(one.name, pa.timestamp(one.type.unit, "UTC"))
        if pa.types.is_timestamp(one.type) and one.type.tz is not None
        else one
        for one in table.schema
    ]
    return table.cast(pa.schema(fields))


@attrs.frozen
class _Leaf:
    """An input of a pipeline.

    Attributes:
        source: the pipeline's.
        asked: the columns that its stage names, besides keys and event time.
        whole_rows: whether it reads all columns.
    """

    source: Source
    asked: Sequence[str]
    whole_rows: bool

    @property
    def is_plain(self) -> bool:
        """Whether a row of the source is a row of the input."""
        return self.source.form is None and self.source.key_sets is None

    def named(self, df: DataFrame) -> NamedRows:
        """The rows with the names that the pipeline uses (OptionError: a column is missing)."""
        try:
            return name_columns(self.source, Given.asked(df), self.asked, whole_rows=self.whole_rows)
        except ColumnError as error:
            of = "" if self.source.name is None else f"input {self.source.name!r}: "
            raise OptionError(
                f"replay(...): {of}{error}; the source gives {df.columns}. Give the function that makes the query's stream, with all "
                "that comes before the pipeline: replay(..., input=events), or --input app:events"
            ) from error

    def rows(self, df: DataFrame, where: Mapping[str, Any], read: Collection[str]) -> DataFrame:
        """The columns that the pipeline reads, of the rows that are asked for."""
        rows = self.named(df).df
        if not self.is_plain:
            return df
        rows = self.selected(rows, where)
        own = {*df.columns, *respelled(df.columns, read).values()}  # without nested fields that were named
        return rows.select(*(column(name) for name in rows.columns if name in read and name in own))

    @staticmethod
    def selected(rows: DataFrame, where: Mapping[str, Any]) -> DataFrame:
        """The rows that are asked for."""
        for name, value in where.items():
            asked = column(name) if name in rows.columns else F.col(name)
            rows = rows.where(asked.eqNullSafe(F.lit(value)))
        return rows

    def reported_us(self, df: DataFrame, clock_us: int) -> DataFrame | None:
        """The watermark that rows report, as a row; None: the clock moves it."""
        policy = self.source.watermark
        followed: str | None = None if policy is None else policy.followed_column(self.source.event_time)
        if policy is None or followed is None or not self.source.is_waited_for:
            return None
        data = unfolded(self.source.form, df)
        time: Column = column(followed) if followed in data.columns else F.col(followed)
        return data.agg(F.max(reported_us(time, policy, F.timestamp_micros(F.lit(clock_us)))).alias(REPORT))
