"""A flow as a batch plan: one final pane per window (docs/rules/running.md#batch).

A stage over one source compiles to Spark's own aggregation if that is equivalent (native.py). Anything else is one pass of the
engine per shard: all rows at once under ``Default()``, then the end of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from beamish.contract.operator import Chained, Native, Operator
from beamish.contract.relation import Ledger
from beamish.contract.stored import DictStore
from beamish.contract.updates import number_rows
from beamish.flow import BoundFlow
from beamish.instants import END_OF_TIME_US
from beamish.source import Source
from beamish.spark.compile.native import (
    native_joined,
    native_over,
    native_panes,
    why_not_native,
    why_not_native_as_of,
    why_not_native_over,
)
from beamish.spark.compile.stream import union
from beamish.spark.rows.columns import column, with_named_fields
from beamish.spark.rows.groups import of_groups
from beamish.spark.rows.pack import PACKED, pane_packer, select_read, source_packer
from beamish.spark.rows.schemas import spark_schema
from beamish.spark.rows.watermark_column import SourceRows, event_time_us_of
from beamish.spark.runtime.workers import check_workers
from beamish.windows.windowings import WINDOWING


def panes_of_batch(flow: BoundFlow, frames: Mapping[str | None, DataFrame]) -> DataFrame:
    """The final panes.

    Args:
        flow: bound to the columns of its sources.
        frames: the rows of each source.
    """
    operator, parts = _apart(flow.operator)
    panes = _of_windowings(attrs.evolve(flow, operator=operator), frames)
    for part in parts:
        panes = panes.mapInArrow(_rows_of(part), spark_schema(part.gives.schema))
    return panes.withMetadata("pane", Ledger.of(flow.operator.gives, final=True).metadata)


def _apart(operator: Operator) -> tuple[Operator, Sequence[Chained]]:
    """An operator and its chained parts, if they are stateless: their rows depend on single rows."""
    stateless = not any(part.tables() for part in operator.chained)
    return (operator.core, operator.chained) if stateless else (operator, ())


def _rows_of(part: Chained) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A stateless part as a function for ``mapInArrow``."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from part.rows(pa.Table.from_batches([batch])).combine_chunks().to_batches()

    return rows


def _of_windowings(flow: BoundFlow, frames: Mapping[str | None, DataFrame]) -> DataFrame:
    parts = []
    for name, operator in flow.operator.parts.items():
        panes = _panes(flow, operator, frames)
        names = flow.operator.gives.schema.names if flow.operator.gives.schema else []
        parts.append(panes if name is None else panes.withColumn(WINDOWING, F.lit(name)).select(*map(column, names)))
    return reduce(DataFrame.unionAll, parts)


def describe(flow: BoundFlow) -> Iterator[tuple[str, str]]:
    """The execution of a stage in a batch, for explain: subject and text."""
    for subject, words in flow.stage.describe(flow.operator.takes, None):
        if subject in (
            "takes",
            "rows",
            "where",
            "duplicates",
            "windows",
            "numbers",
            "pairs",
            "frame",
            "values",
            "columns",
            "having",
            "explode",
        ):
            yield subject, words
    parts = _apart(flow.operator)[0].parts
    by = "; ".join(_by(name, part) for name, part in parts.items())
    if all(part.native is not None and part.native.name == Native.AGGREGATION for part in parts.values()):
        words = f"one on-time pane per window, of all its rows, by {by}; triggers, lateness and modes do not apply"
    else:
        words = f"final rows, by {by}; watermarks do not apply"
    yield "batch", words


def _by(name: str | None, operator: Operator) -> str:
    """The operator that computes a windowing."""
    why_not = _why_not_native(operator)
    if why_not:
        words = f"one pass of the engine per shard, since {why_not}"
    else:
        assert operator.native is not None  # noqa: S101 - it is asked why not
        words = f"Spark's own {operator.native.name}"
    return words if name is None else f"{name}: {words}"


_NATIVE: Mapping[str, tuple[Callable[[Any], str], Callable[..., DataFrame]]] = {
    Native.AGGREGATION: (why_not_native, native_panes),
    Native.WINDOW_FUNCTION: (why_not_native_as_of, native_joined),
    Native.OVER: (why_not_native_over, native_over),
}
"""Per native Spark operator: why a plan cannot use it (empty: it can), and the plan's translation."""


def _why_not_native(operator: Operator) -> str:
    """Why an operator has no native equivalent; empty if it has."""
    native = operator.native
    return "Spark has no operator like it" if native is None else _NATIVE[native.name][0](native.plan)


def _panes(flow: BoundFlow, operator: Operator, frames: Mapping[str | None, DataFrame]) -> DataFrame:
    """The final panes of one windowing."""
    native = operator.native
    if native is None or _why_not_native(operator):
        return engine_panes(attrs.evolve(flow, operator=operator), frames)
    taken = zip(flow.sources, operator.takes, strict=True)
    rows = (with_named_fields(frames[source.name], relation.schema) for source, relation in taken)
    return _NATIVE[native.name][1](native.plan, *rows)


def engine_panes(flow: BoundFlow, frames: Mapping[str | None, DataFrame]) -> DataFrame:
    """The final panes of the last stage by one pass of the engine per shard (SparkSetupError: the workers' Python cannot run it)."""
    operator, packed = flow.operator, []
    check_workers(next(iter(frames.values())).sparkSession)
    for number, taken in enumerate(flow.inputs):
        rows = frames[taken.name] if isinstance(taken, Source) else panes_of_batch(taken, frames)
        if operator.takes[number].is_panes:
            packer = pane_packer(operator, number, streaming=False, read=iter)
        else:
            event_time_us = event_time_us_of(operator.takes[number].event_time)
            rows = select_read(operator, number, SourceRows(rows, event_time_us), report=False)
            packer = source_packer(operator, number)
        packed.append(rows.mapInArrow(packer, spark_schema(PACKED)))
    return of_groups(union(packed), "shard", final_panes(operator), spark_schema(operator.gives.schema))


def final_panes(operator: Operator) -> Callable[[pa.Table], pa.Table]:
    """A function for ``of_groups``: the payloads of a shard to its panes."""
    inputs = len(operator.takes)

    def panes(packed: pa.Table) -> pa.Table:
        shard = operator.open(DictStore())
        payloads = [payload for payload in packed["payload"].to_pylist() if payload is not None]
        dropped = shard.step([None] * inputs, None, payloads)
        return number_rows(pa.concat_tables([dropped, shard.step([END_OF_TIME_US] * inputs, None, [])]), 0, None)

    return panes
