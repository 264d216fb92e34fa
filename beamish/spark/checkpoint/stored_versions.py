"""The versioned table in a checkpoint, as of a time."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from beamish.addresses import printable
from beamish.errors import StateError
from beamish.kinds.versions.note import ENTRY
from beamish.kinds.versions.reading import StoredTable
from beamish.spark.checkpoint.entries import shard_with, state_errors, stateful_operators, store_of
from beamish.spark.rows.types import spark_schema


@state_errors()
def table_in_checkpoint(
    spark: SparkSession, checkpoint: str, batch: int | None, name: str | None
) -> tuple[StoredTable, DataFrame]:
    """A versioned table of a query: what one of its shards says of it, and the entries of all.

    Raises:
        StateError: there is none.
    """
    for entries in stateful_operators(spark, checkpoint, batch):
        shard = shard_with(entries, ENTRY)
        if shard is not None and StoredTable(shard).name == name:
            return StoredTable(shard), entries
    raise StateError(f"versions({name!r}): the checkpoint {printable(checkpoint)} has no versioned table of this name")


def stored_versions(table: StoredTable, entries: DataFrame, as_of_us: int | None) -> DataFrame:
    """The versions of a table in a checkpoint; ``as_of_us`` as in ``StoredTable.rows``."""
    schema = table.schema

    def rows(of_shard: pa.Table) -> pa.Table:
        store = store_of(of_shard)
        return StoredTable(store).rows(as_of_us) if ENTRY in store else schema.empty_table()

    return entries.groupBy("shard").applyInArrow(rows, spark_schema(schema))
