"""The windows that a stage keeps, in a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import reduce
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.addresses import printable
from beamish.at_rest.stage_plans import window_plan
from beamish.contract.input_schemas import TAKES, noted_takes
from beamish.contract.operator import Operator
from beamish.contract.sharding import shard_of
from beamish.contract.store import DictStore, Store
from beamish.errors import BeamishError, StateError
from beamish.flow import Flow
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import cast
from beamish.kinds.suppress.stage import unsuppressed
from beamish.kinds.window.kept_rows import kept_rows, rows_schema
from beamish.kinds.window.kept_windows import check_key, kept_schema, kept_windows, key_names
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.stage import WindowStage
from beamish.kinds.window.stored_windows import read_index
from beamish.spark.checkpoint.entries import state_errors, stateful_operators, store_of, stores_of
from beamish.spark.operator.notes import NOTE, noted_shards
from beamish.spark.rows.columns import column
from beamish.spark.rows.shard_ids import shard_ids
from beamish.spark.rows.types import spark_schema
from beamish.tables.prefixed import StoreUnder
from beamish.tables.stored_tables import INDEX, WINDOWINGS, segment_name

MOST_NAMES = 1000
"""Of so many segments at most each is asked for by its name; of more all are read."""


def windows_in_checkpoint(
    of: Flow,
    spark: SparkSession,
    checkpoint: str,
    *,
    batch: int | None,
    span_us: tuple[int, int],
    key: Mapping[str, Any],
) -> DataFrame:
    """The windows of a stage, as rows in ``kept_schema``.

    Args:
        of: the stage, with what it takes.
        spark: the session that reads it.
        checkpoint: its folder.
        batch: the number of the batch after which it is read; None: the last one.
        span_us: only windows that overlap this span, microseconds since the epoch.
        key: only those with these values in these key columns.

    Raises:
        StateError: the checkpoint has no such stage, or is too old to be read without rows.
        OptionError: ``key`` names no key column.
    """
    return _of_stage(of, spark, checkpoint, batch).windows(span_us, key)


def rows_in_checkpoint(
    stage: Flow,
    spark: SparkSession,
    checkpoint: str,
    *,
    batch: int | None,
    span: tuple[int, int],
    key: Mapping[str, Any],
    of: str | None,
) -> DataFrame:
    """The rows that a stage keeps in its windows, as rows in ``rows_schema`` (``kinds/window/kept_rows.py``).

    Args:
        stage: the stage, with what it takes.
        spark: the session that reads it.
        checkpoint: its folder.
        batch: the number of the batch after which it is read; None: the last one.
        span: only rows in this span, microseconds since the epoch, or numbers.
        key: only those with these values in these key columns.
        of: what keeps them.

    Raises:
        StateError: the checkpoint has no such stage, or is too old to be read without rows.
        OptionError: ``key`` names no key column.
        PipelineError: nothing keeps rows, or not that.
    """
    return _of_stage(stage, spark, checkpoint, batch).rows(span, key, of)


@state_errors()
def _of_stage(of: Flow, spark: SparkSession, checkpoint: str, batch: int | None) -> _StoredWindows:
    """What a checkpoint has of a stage."""
    why: StateError | None = None
    for entries in stateful_operators(spark, checkpoint, batch):
        try:
            return _StoredWindows.read(of, entries)
        except StateError as error:  # it is of another stage
            why = why or error
    raise why or StateError(
        f"state: the checkpoint {printable(checkpoint)} has no state; give the folder of the query's option checkpointLocation"
    )


@attrs.frozen
class _StoredWindows:
    """The windows of a stage of a query.

    Attributes:
        plan: the stage's, bound to the columns that its state was begun with.
        entries: of all shards.
        notes: per shard the entries that say what the others hold.
    """

    plan: WindowPlan
    entries: DataFrame
    notes: Mapping[int, DictStore]

    @classmethod
    def read(cls, of: Flow, entries: DataFrame) -> _StoredWindows:
        """Find out what the shards hold.

        Raises:
            StateError: no windows, or those of another stage.
        """
        stage = unsuppressed(of.stage)
        assert isinstance(stage, WindowStage)  # noqa: S101 - it was asked for as one
        names = list(stage.options.window.windowings) if stage.options.window is not None else []
        under = [f"{name}/" for name in names] or [""]
        entries_of_notes = [NOTE, WINDOWINGS, *(f"{place}{entry}" for place in under for entry in (INDEX, TAKES))]
        rows = entries.where(F.col("name").isin(entries_of_notes)).collect()
        notes = stores_of(rows, entries_of_notes.__contains__)
        return cls(_plan_of(of, names, notes), entries, notes)

    def windows(self, span_us: tuple[int, int], key: Mapping[str, Any]) -> DataFrame:
        """Those that overlap a span, of keys with some values."""
        plan, schema = self.plan, kept_schema(self.plan)
        check_key(key_names(schema.names), key)
        entries, needed = self.needed(span_us, key)

        def windows(of_shard: pa.Table) -> pa.Table:
            return kept_windows(plan, store_of(of_shard, needed.__contains__), span_us)

        found = entries.groupBy("shard").applyInArrow(windows, spark_schema(schema))
        return reduce(lambda df, name: df.where(column(name).eqNullSafe(F.lit(key[name]))), key, found)

    def rows(self, span: tuple[int, int], key: Mapping[str, Any], of: str | None) -> DataFrame:
        """The rows in a span, of keys with some values."""
        plan, schema = self.plan, rows_schema(self.plan, of)
        check_key(plan.output_key_schema.names, key, "rows")
        holds = all(one.window.holds_its_rows for one in plan.windowings.values() or (plan,))
        entries, needed = self.needed(span if holds else (-END_OF_TIME_US, END_OF_TIME_US), key)

        def rows(of_shard: pa.Table) -> pa.Table:
            return kept_rows(plan, store_of(of_shard, needed.__contains__), span, of)

        found = entries.groupBy("shard").applyInArrow(rows, spark_schema(schema))
        return reduce(lambda df, name: df.where(column(name).eqNullSafe(F.lit(key[name]))), key, found)

    def needed(self, span_us: tuple[int, int], key: Mapping[str, Any]) -> tuple[DataFrame, AbstractSet[str]]:
        """The entries that must be read, perhaps with others, and their names."""
        needed = {name for store in self.notes.values() for name in (*store, *self._segments(store, span_us))}
        entries = self.entries.where(F.col("name").isin(list(needed))) if len(needed) <= MOST_NAMES else self.entries
        names = self.plan.key_schema.names
        if not names or not set(names) <= key.keys():
            return entries, needed
        return entries.where(F.col("shard") == shard_of_key(self.plan, key)), needed

    def _segments(self, store: DictStore, span_us: tuple[int, int]) -> Iterator[str]:
        """The entries of a shard in which there are windows of a span."""
        windowings: dict[str, Store] = {f"{name}/": StoreUnder(name, store) for name in self.plan.windowings}
        for under, own in (windowings or {"": store}).items():
            index = read_index(own).segments
            overlaps = pc.and_(pc.less(index["start_us"], span_us[1]), pc.greater(index["end_us"], span_us[0]))
            yield from (under + segment_name(number) for number in index["segment"].filter(overlaps).to_pylist())


def _plan_of(of: Flow, names: list[str], notes: Mapping[int, DictStore]) -> WindowPlan:
    """The plan of a stage, under windowings of these names, bound to the columns that its shards noted.

    Raises:
        StateError: they hold no windows, or those of another stage.
    """
    under = f"{names[0]}/" if names else ""
    shards = [store for store in notes.values() if f"{under}{INDEX}" in store]
    if not shards:
        raise StateError("state: the checkpoint has no windows of such a stage")
    takes = noted_takes([StoreUnder(names[0], shard) if names else shard for shard in shards], of.takes)
    operator: Operator = of.stage.bind(takes, shards=noted_shards(shards[0]))
    operator.open(DictStore(shards[0]))  # compares what the state is of
    return window_plan(operator)


def shard_of_key(plan: WindowPlan, key: Mapping[str, Any]) -> int:
    """The id of the shard of a key."""
    columns = [cast(pa.array([key[field.name]]), field.type) for field in plan.key_schema]
    return shard_ids(plan.shards)[shard_of(pa.table(columns, schema=plan.key_schema), plan.shards)]


def plans_of(flow: Flow, notes: Mapping[int, DictStore]) -> Iterator[WindowPlan]:
    """The plans of the stages of a pipeline that shards with these notes may be of."""
    for below in flow.flows:
        stage = unsuppressed(below.stage)
        if isinstance(stage, WindowStage):
            names = list(stage.options.window.windowings) if stage.options.window is not None else []
            with suppress(BeamishError):
                yield _plan_of(below, names, notes)
