"""A flow as a streaming query.

Each stage, or group of fused stages (fusion/groups.py), from the leaves to the root, is

    rows of a source -> withWatermark -> packed into one or a few payloads per (task, shard)    (rows/pack.py: source_packer)
    panes of a stage, as bytes -> packed                                                   (pane_packer)
    -> heartbeats for every shard, if the flow needs the clock
    -> by shard, the operator, which emits panes as bytes                                  (operator/processor.py)

and the last one emits panes as rows of plain columns if possible (operator/panes.py), else as bytes too. The watermark is
Spark's if one number is right for every stage. Otherwise - inputs that follow the clock, stages that see only some of the sources
- tasks report the watermark of their rows, and each stage forwards its own to the next.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from types import MappingProxyType

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F

from beamish.contract.operator import Cadence, Operator
from beamish.contract.stored import COLUMNS, schema_texts
from beamish.flow import descriptions
from beamish.fusion.groups import GroupedFlow
from beamish.kernels.column_names import WATERMARK
from beamish.modes import WaitFor
from beamish.source import Source
from beamish.spark.operator.heartbeats import heartbeats, register
from beamish.spark.operator.notes import About, FusedAbout
from beamish.spark.operator.panes import are_plain, panes_from_bytes, panes_of_rows, plain_schema
from beamish.spark.operator.processor import (
    OBSERVED_OUTPUT,
    OUTPUT,
    FromQuery,
    FromReports,
    ShardProcessor,
    WakePolicy,
    WatermarkSource,
)
from beamish.spark.rows.columns import OF_PANES
from beamish.spark.rows.pack import (
    FIRST_SHARD,
    NO_INPUT,
    PACKED,
    known,
    pane_packer,
    select_read,
    shard_ids,
    source_packer,
)
from beamish.spark.rows.schemas import pane_schema, spark_schema
from beamish.spark.rows.watermark_column import SourceRows
from beamish.spark.runtime.observation import with_observations
from beamish.spark.runtime.session import check_least_watermark, warn_of_single_batches
from beamish.spark.runtime.workers import AcknowledgedFunction


def panes_of_stream(
    flow: GroupedFlow,
    rows: Mapping[str | None, SourceRows],
    ticks: DataFrame | None = None,
    *,
    initial: Mapping[str | None, SourceRows] = MappingProxyType({}),
    observed: str | None = None,
    declared: bool = False,
) -> DataFrame:
    """The panes of streams.

    Args:
        flow: bound to their columns, its stages in groups.
        rows: the rows of each source.
        ticks: heartbeats (``clock_us``), one per batch; None: those of the machine clock, if needed.
        initial: the initial rows of tables, by the names of their sources.
        observed: the name of the observation, if any.
        declared: whether no Spark call may be made; ``register`` was called before.
    """
    spark = next(iter(rows.values())).df.sparkSession
    if needs_ticks(flow) and ticks is None:
        warn_of_single_batches(None if declared else spark)
        if not declared:
            register(spark)
        ticks = heartbeats(spark)
    if ticks is not None and not any(policy.moved_by_rows for policy in flow.policies):
        # Spark requires a watermark in the query, though the shards follow the clock.
        ticks = ticks.withColumn(WATERMARK, F.timestamp_micros("clock_us")).withWatermark(WATERMARK, "0 seconds")
    reports = needs_reports(flow)
    if len(rows) > 1 and not reports and not declared:
        check_least_watermark(spark)
    abouts = abouts_of(flow)
    # The mark identifies the event time for Spark's own stateful operators after this one, which have the query's
    # watermark.
    schema = pane_schema(flow.operator.gives, OF_PANES if has_querys_watermark(flow) else {})
    as_rows = observed is None and are_plain(flow.operator.gives.schema)
    operated = _operated(
        flow,
        rows,
        ticks,
        initial,
        abouts,
        reports=reports,
        forwards_watermark=False,
        observed=observed,
        as_rows=as_rows,
    )
    if as_rows:
        return known(operated.select(*panes_of_rows(flow.operator.gives.schema, schema)), schema)
    return operated.mapInArrow(AcknowledgedFunction(panes_from_bytes), schema)


def abouts_of(flow: GroupedFlow) -> dict[int, About]:
    """The descriptions of stages, with their input columns, by their numbers."""
    return {
        said["stage"]: About(json.dumps({**said, COLUMNS: schema_texts(one.operator.takes)}), said["stage"])
        for one, said in zip(flow.of.flows, descriptions(flow.of), strict=True)
    }


def _about(flow: GroupedFlow, abouts: Mapping[int, About]) -> About | FusedAbout:
    """The description of a group."""
    if len(flow.links) == 1:
        return abouts[flow.links[0].number]
    return FusedAbout({link.name: abouts[link.number] for link in flow.links})


def has_querys_watermark(flow: GroupedFlow) -> bool:
    """Whether the last stage's watermark is the query's, as for Spark's own operators after it."""
    by_rows = all(policy.moved_by_rows for policy in flow.policies)
    return by_rows and not needs_reports(flow) and not flow.operator.holds_watermark


def needs_reports(flow: GroupedFlow) -> bool:
    """Whether stages need watermark reports, since the query's watermark is not right for each.

    The query's is the least of all sources'. It is right for every stage if all stages see all sources, no source's policy
    follows the clock, which Spark does not know (for one group with one source the engine follows it), no group forwards an
    earlier watermark than its own, and no merge follows the fastest of its inputs.
    """
    if any(below.operator.holds_watermark for below in flow.flows[:-1]):
        return True
    if any(stage.stage.core.declared("wait_for") is WaitFor.FASTEST_INPUT for stage in flow.of.flows):
        return True
    if any(policy.needs_clock for policy in flow.policies):
        return len(flow.sources) > 1 or len(flow.flows) > 1
    return sum(stage.takes_source for stage in flow.of.flows) > 1


def has_own_watermark(flow: GroupedFlow, *, reports: bool, sources: int) -> bool:
    """Whether tasks report the watermark of a stage; ``reports``: whether the flow, with this many sources, needs reports."""
    return reports and not (
        sources == 1 and flow.takes_source
    )  # over a single source the query's watermark is the stage's own


def needs_ticks(flow: GroupedFlow) -> bool:
    """Whether heartbeats are needed: for the clock, or to apply reports when rows stop."""
    return flow.needs_clock or needs_reports(flow)


def _operated(
    flow: GroupedFlow,
    rows: Mapping[str | None, SourceRows],
    ticks: DataFrame | None,
    initial: Mapping[str | None, SourceRows],
    abouts: Mapping[int, About],
    *,
    reports: bool,
    forwards_watermark: bool,
    observed: str | None,
    as_rows: bool = False,
) -> DataFrame:
    """The panes of a group as bytes or ``as_rows``, with its watermark if it ``forwards_watermark`` that.

    Args:
        flow: the group.
        rows, ticks, initial: as for ``panes_of_stream``.
        abouts: stages' descriptions by their numbers.
        reports: whether the flow needs reports.
        forwards_watermark: whether its watermark is emitted for the next group.
        observed: the name of its observation; None: it is not observed.
        as_rows: whether panes are emitted as plain columns.
    """
    operator = flow.operator
    own = has_own_watermark(flow, reports=reports, sources=len(rows))
    wakes = wakes_of(operator, reports=own)
    call_all = own or observed is not None or len(flow.links) > 1
    frames = [
        _operated(
            taken,
            rows,
            ticks,
            initial,
            abouts,
            reports=reports,
            forwards_watermark=reports,
            observed=observed and f"{observed}{flow.paths[number]}",
        ).mapInArrow(
            pane_packer(operator, number, streaming=True, read=panes_from_bytes),
            spark_schema(PACKED),
        )
        if isinstance(taken, GroupedFlow)
        else _packed(operator, number, rows[taken.name], wakes, report=own, call_all=call_all)
        for number, taken in enumerate(flow.inputs)
    ]
    if ticks is not None:
        frames.append(_for_each_shard(operator, ticks))
    watermark: WatermarkSource = FromQuery(tuple(relation.policy.moved_by_rows for relation in operator.takes))
    if own:
        watermark = FromReports(tuple(relation.is_panes for relation in operator.takes))
    processor = ShardProcessor(
        operator,
        watermark,
        wakes,
        forwards_watermark=forwards_watermark,
        observed=observed is not None,
        as_rows=as_rows,
        about=_about(flow, abouts),
    )
    output = OUTPUT if observed is None else OBSERVED_OUTPUT
    if as_rows:
        output = spark_schema(plain_schema(operator.gives.schema))
    operated = (
        known(union(frames), spark_schema(PACKED))
        .groupBy("shard")
        .transformWithStateInPandas(
            processor,
            outputStructType=output,
            outputMode="Append",
            timeMode="EventTime",
            initialState=_initial_state(flow, initial),
        )
    )
    if observed is not None:
        return known(with_observations(operated, observed, [link.path for link in flow.links[:-1]]), OUTPUT)
    return known(operated, output)


def _initial_state(flow: GroupedFlow, initial: Mapping[str | None, SourceRows]) -> GroupedData | None:
    """The initial rows of a stage's table, as payloads."""
    for number, taken in enumerate(flow.inputs):
        if isinstance(taken, Source) and taken.name in initial:
            operator = flow.operator
            rows = select_read(operator, number, initial[taken.name], report=False)
            return rows.mapInArrow(source_packer(operator, number), spark_schema(PACKED)).groupBy("shard")
    return None


def _packed(
    operator: Operator, number: int, rows: SourceRows, wakes: WakePolicy, *, report: bool, call_all: bool
) -> DataFrame:
    """The payloads of a source's rows, or of another query's panes."""
    if operator.takes[number].is_panes:
        return rows.df.mapInArrow(pane_packer(operator, number, streaming=True, read=iter), spark_schema(PACKED))
    ids = shard_ids(operator.shards)
    calls = ids if call_all else (FIRST_SHARD,)
    first_calls = () if wakes is WakePolicy.CALLED else ids  # another run may have woken them otherwise
    selected = select_read(operator, number, rows, report=report)
    packer = source_packer(operator, number, calls=calls, first_calls=first_calls)
    return selected.mapInArrow(packer, spark_schema(PACKED))


def wakes_of(operator: Operator, *, reports: bool) -> WakePolicy:
    """The rows that wake the shards of a stage; ``reports``: tasks report its inputs' watermarks."""
    if any(relation.is_panes for relation in operator.takes):
        return WakePolicy.CALLED
    if reports or operator.cadence is Cadence.EVERY_STEP:
        return WakePolicy.EVERY_BATCH
    moved = any(relation.policy.moved_by_rows for relation in operator.takes)
    return WakePolicy.WHEN_DUE if moved else WakePolicy.CALLED


def _for_each_shard(operator: Operator, ticks: DataFrame) -> DataFrame:
    """A heartbeat for every shard."""
    ids = F.array(*map(F.lit, shard_ids(operator.shards)))
    return ticks.select(
        F.explode(ids).alias("shard"),
        "clock_us",
        F.lit(None).cast("binary").alias("payload"),
        F.lit(NO_INPUT).cast("tinyint").alias("input"),
        F.lit(0).cast("bigint").alias("report_us"),
    )


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """The union of rows."""
    return reduce(DataFrame.unionByName, frames)
