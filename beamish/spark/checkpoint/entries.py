"""The entries of the shards' stores in a checkpoint, read with Spark's state reader (docs/spark-notes.md#state-from-outside)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession
from pyspark.sql import functions as F

from beamish.contract.store import DictStore
from beamish.errors import of
from beamish.spark.operator.notes import every, opened
from beamish.spark.operator.partition import NO_SHARD, other_partition
from beamish.spark.rows.shard_ids import partition_of
from beamish.spark.runtime.session import check_session


def checkpoint_reader(spark: SparkSession) -> DataFrameReader:
    """A reader for a checkpoint, in a session that may not have run a query.

    Raises:
        SparkSetupError: Spark is too old.
    """
    check_session(spark)
    # The state reader needs the StateStoreCoordinator, which Spark 4.2.0 and 4.2.1 create with the session's query
    # manager.
    _ = spark.streams.active
    return spark.read


@contextmanager
def state_errors() -> Iterator[None]:
    """Report Spark's error for an unreadable checkpoint as a StateError.

    Raises:
        StateError: the checkpoint cannot be read.
    """
    try:
        yield
    except Exception as error:
        ours = of(error)
        if ours is None or ours is error:
            raise
        raise ours from error


def operators(spark: SparkSession, checkpoint: str) -> list[int]:
    """The ids of a query's stateful operators that are stages of a pipeline, in order."""
    metadata = checkpoint_reader(spark).format("state-metadata").load(checkpoint)
    ours = metadata.where(F.col("operatorProperties").contains('"stateName":"shard"'))
    return [row.operatorId for row in ours.select("operatorId").distinct().orderBy("operatorId").collect()]


def check_partitions(rows: Iterable[Row], operator: int, partitions: int) -> None:
    """Check that collected entries (``shard``, ``partition_id``) are in the partitions of their shards.

    Raises:
        StateError: the folders of two partitions were exchanged.
    """
    for row in rows:
        belongs = partition_of(row.shard, partitions)
        if row.partition_id != belongs:
            here, there = (
                f"partition {number} of {partitions} of operator {operator}" for number in (row.partition_id, belongs)
            )
            raise other_partition(row.shard, here, there)


def partitions_of(spark: SparkSession, checkpoint: str) -> int:
    """The number of state partitions of a query."""
    metadata = checkpoint_reader(spark).format("state-metadata").load(checkpoint)
    return int(metadata.agg(F.max("numPartitions")).collect()[0][0])


def has_other_operators(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a query has stateful operators that are not stages of a pipeline."""
    every = checkpoint_reader(spark).format("state-metadata").load(checkpoint).select("operatorId").distinct().count()
    return every > len(operators(spark, checkpoint))


def entries_of(spark: SparkSession, checkpoint: str, batch: int | None, operator: int) -> DataFrame:
    """The entries of the stores of a stateful operator's shards: ``shard``, ``name``, ``value``, ``partition_id``.

    Args:
        spark: the session.
        checkpoint: its folder.
        batch: read the state after this batch; None: the last one.
        operator: the id of the operator.
    """
    reader = (
        checkpoint_reader(spark).format("statestore").option("operatorId", operator).option("stateVarName", "shard")
    )
    if batch is not None:
        reader = reader.option("batchId", batch)
    name, value = F.col("user_map_key.name").alias("name"), F.col("user_map_value.value").alias("value")
    entries = reader.load(checkpoint).where(F.col("key.shard") != NO_SHARD)
    return entries.select("key.shard", name, value, "partition_id")


def stores_of(rows: Iterable[Row], asked: Callable[[str], bool] = every) -> dict[int, DictStore]:
    """Collected entries (``shard``, ``name``, ``value``) as the stores of their shards; those without a value are skipped.

    Args:
        rows: the entries, including metadata.
        asked: selects the requested entries of a shard.

    Raises:
        StateError: an entry is damaged or missing.
    """
    entries: dict[int, dict[str, bytes]] = {}
    for row in rows:
        of_shard = entries.setdefault(row.shard, {})
        if row["value"] is not None:
            of_shard[row["name"]] = bytes(row["value"])
    return {shard: opened(own, shard, asked) for shard, own in entries.items()}


def store_of(entries: pa.Table, asked: Callable[[str], bool] = every) -> DictStore:
    """Entries of one shard, including its metadata, as its store; ``asked`` as in ``stores_of``.

    Raises:
        StateError: an entry is damaged or missing.
    """
    names, values = entries["name"].to_pylist(), entries["value"].to_pylist()
    return opened(dict(zip(names, values, strict=True)), entries["shard"][0].as_py(), asked)
