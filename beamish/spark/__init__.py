"""Flows on Spark: streaming and batch DataFrames, and test scripts as real micro-batches.

Not imported by ``import beamish``: pyspark is loaded when a pipeline is applied to a DataFrame. Workers import this package too, so
that its functions import what only the driver needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beamish.packages import check_packages

check_packages()  # before any module of this package imports it

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from beamish.flow import BoundFlow, Flow
    from beamish.fusion.groups import Fuse
    from beamish.spark.rows.schemas import DeclaredInputs


def apply(
    flow: Flow,
    df: DataFrame | None,
    inputs: Mapping[str, DataFrame],
    shards: int | None = None,
    *,
    initial: DataFrame | Mapping[str, DataFrame] | None = None,
    declared: DeclaredInputs | None = None,
    fuse: Fuse | None = None,
) -> DataFrame:
    """The panes of a flow's last stage.

    Args:
        flow: the flow to apply.
        df: the rows of its only source; for a source without event time the panes of another query.
        inputs: in place of ``df`` the rows of each source, by name.
        shards: number of shards of each stage, at least 1; None: ``spark.sql.shuffle.partitions``.
        initial: the initial rows of versioned tables, as for ``Flow.initial``.
        declared: declared schemas, so that no Spark call is made; None: read from Spark.
        fuse: which stages run together; None: all that may.

    Raises:
        PipelineError, ColumnError, OptionError, SparkSetupError: the flow, its columns, the number of shards or the session is
            invalid, or DataFrames and sources do not match.
    """
    from beamish.fusion.groups import FUSE
    from beamish.spark.compile.batch import panes_of_batch
    from beamish.spark.compile.inputs import name_initial, name_inputs, with_initial
    from beamish.spark.compile.stream import has_querys_watermark, needs_ticks, panes_of_stream
    from beamish.spark.runtime.observation import can_be_observed
    from beamish.spark.runtime.session import (
        check_session,
        check_streaming,
        settle_partitions,
        shard_count,
        warn_of_waiting_windows,
    )
    from beamish.spark.split import as_they_came

    named = name_inputs(flow, df, inputs, declared)
    if declared is None:
        check_session(named.spark)
    if named.streaming and declared is None:
        settle_partitions(named.spark)
    count = shard_count(named.spark, shards)
    bound = named.bind(count)
    begins = name_initial(named, flow.initial(initial))
    if not named.streaming:
        return as_they_came(bound, panes_of_batch(bound, with_initial(named.frames, begins)), marked=False)
    if declared is None:
        check_streaming(named.spark)

    how = FUSE if fuse is None else fuse
    if declared is None and not needs_ticks(how.grouped(bound)):
        warn_of_waiting_windows(named.spark)

    def panes(observed: str | None = None) -> DataFrame:
        flow = how.grouped(bound)
        if observed is not None:
            flow = how.grouped(named.bind(count))
            for below in flow.flows:
                below.operator.observe()
        out = panes_of_stream(flow, named.rows, initial=begins, observed=observed, declared=declared is not None)
        return as_they_came(flow, out, marked=has_querys_watermark(flow))

    return can_be_observed(panes(), panes)


def bind(flow: Flow, df: DataFrame | None, inputs: Mapping[str, DataFrame], shards: int | None = None) -> BoundFlow:
    """A flow bound to the columns of DataFrames, without checking the session.

    Raises:
        PipelineError, ColumnError, OptionError: as ``apply``.
    """
    from beamish.spark.compile.inputs import name_inputs
    from beamish.spark.runtime.session import shard_count

    named = name_inputs(flow, df, inputs)
    return named.bind(shard_count(named.spark, shards))


def register(spark: SparkSession) -> None:
    """Register the heartbeat source, which carries the clock, in a session."""
    from beamish.spark.operator.heartbeats import register as register_heartbeats

    register_heartbeats(spark)


def describe_batch(flow: BoundFlow) -> Iterator[tuple[str, str]]:
    """The execution of a stage in a batch, for explain: subject and text."""
    from beamish.spark.compile.batch import describe

    return describe(flow)


__all__ = ["apply", "bind", "describe_batch", "register"]
