"""Pipelines on Spark: streaming and batch DataFrames, and test scripts as real micro-batches.

Nothing here is imported by ``import beamish``: pyspark is loaded when a pipeline meets a DataFrame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beamish.spark.split import dropped, panes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from beamish.options import Options
    from beamish.plan import Plan


def apply(options: Options, df: DataFrame, shards: int | None = None) -> DataFrame:
    """Apply a pipeline's options to a streaming or batch DataFrame.

    Args:
        options: the pipeline.
        df: its rows; for a pipeline without event time the panes of another.
        shards: into how many parts the keys' state is cut, at least 1; None: ``spark.sql.shuffle.partitions``.

    Raises:
        PipelineError, ColumnError, OptionError, SparkSetupError: the pipeline, its columns, the shard count or the
            session is wrong.
    """
    from beamish.spark.compile.batch import panes_of_batch
    from beamish.spark.compile.stages import are_panes, panes_of_panes
    from beamish.spark.compile.stream import panes_of_stream

    if options.event_time is None and are_panes(df):
        return panes_of_panes(options, df, shards)
    return panes_of_stream(options, df, shards) if df.isStreaming else panes_of_batch(options, df, shards)


def plan_for(options: Options, df: DataFrame, shards: int | None = None) -> Plan:
    """The plan of a pipeline for a DataFrame, without a look at the session.

    Raises:
        PipelineError, ColumnError, OptionError: the pipeline, its columns or the shard count is wrong.
    """
    from beamish.plan import make_plan
    from beamish.spark.rows.columns import name_columns
    from beamish.spark.shard_count import shard_count

    named = name_columns(options, df)
    return make_plan(named.options, named.schema, shards=shard_count(df.sparkSession, named.options, shards))


def apply_chain(stages: Sequence[Options], df: DataFrame, shards: int | None = None) -> DataFrame:
    """Apply the stages of a chain to a streaming or batch DataFrame.

    Raises:
        PipelineError, ColumnError, OptionError, SparkSetupError: a stage, its columns, the shard count or the session
            is wrong.
    """
    from beamish.spark.compile.stages import panes_of_chain

    return panes_of_chain(stages, df, shards)


def apply_merged_chain(
    stages: Sequence[Options], inputs: Mapping[str, DataFrame], shards: int | None = None
) -> DataFrame:
    """Apply the stages of a chain that begins with a merge to streaming or batch DataFrames, one an input.

    Raises:
        PipelineError, ColumnError, OptionError, SparkSetupError: a stage, its columns, the shard count or the session
            is wrong, or DataFrames and inputs do not match.
    """
    from beamish.spark.compile.inputs import panes_of_merged_chain

    return panes_of_merged_chain(stages, inputs, shards)


def apply_merge(options: Options, inputs: Mapping[str, DataFrame], shards: int | None = None) -> DataFrame:
    """Apply a merge's options to streaming or batch DataFrames, one an input.

    Raises:
        PipelineError, ColumnError, OptionError, SparkSetupError: the pipeline, its columns, the shard count or the
            session is wrong, or DataFrames and inputs do not match.
    """
    from beamish.spark.compile.inputs import panes_of_merge

    return panes_of_merge(options, inputs, shards)


def plan_for_merge(options: Options, inputs: Mapping[str, DataFrame], shards: int | None = None) -> Plan:
    """The plan of a merge for its DataFrames, without a look at the session.

    Raises:
        PipelineError, ColumnError, OptionError: the pipeline, its columns or the shard count is wrong.
    """
    from beamish.spark.compile.inputs import plan_for_merge as plan

    return plan(options, inputs, shards)


__all__ = [
    "apply",
    "apply_chain",
    "apply_merge",
    "apply_merged_chain",
    "dropped",
    "panes",
    "plan_for",
    "plan_for_merge",
]
