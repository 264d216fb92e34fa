"""A batch of panes merged into a table of Spark's, by SQL in the batch's own session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.errors import SinkError
from beamish.kernels.image_columns import DELETED, SEQUENCE
from beamish.kernels.merge_statement import merge_statement
from beamish.kernels.quoting import quoted
from beamish.spark.images import Images, images, query_id
from beamish.spark.rows.columns import column

_OWNER = "beamish.query"
"""The table property that says which query the table belongs to."""


class Merged(Protocol):
    """What is declared of the sink."""

    @property
    def table(self) -> str: ...
    @property
    def keep_deleted(self) -> bool: ...
    @property
    def create(self) -> str | None: ...
    @property
    def fields(self) -> Sequence[str]: ...
    @property
    def keys(self) -> Sequence[str] | None: ...


def merge_batch(sink: Merged, batch_df: DataFrame, batch_id: int) -> None:
    """Merge a batch into the table (see ``bm.sinks.merge``)."""
    spark = batch_df.sparkSession
    where = f"sinks.merge({sink.table!r})"
    taken = images(batch_df, where, sink.fields, sink.keys, as_json=False)
    columns = [name for name in taken.names if name != DELETED or sink.keep_deleted]
    if sink.create is not None:
        types = ", ".join(
            f"{quoted(field.name)} {field.dataType.simpleString()}"
            for field in taken.df.select(*map(column, columns)).schema
        )
        spark.sql(f"CREATE TABLE IF NOT EXISTS {sink.table} ({types}) USING {sink.create}")
    _check_owner(spark, sink.table, query_id(batch_df))
    _check_fits(spark, sink.table, columns)
    net = net_of(taken).persist()  # a merge reads its source more than once, and would run the query's plan again
    view = f"_beamish_batch_{batch_id}"
    net.createOrReplaceTempView(view)
    try:
        spark.sql(
            merge_statement(
                sink.table,
                quoted(view),
                data=[name for name in taken.names if name != DELETED],
                identity=taken.identity,
                quote=quoted,
                same="<=>",
                keep_deleted=sink.keep_deleted,
            )
        )
    finally:
        spark.catalog.dropTempView(view)
        net.unpersist()


def net_of(taken: Images) -> DataFrame:
    """Of each identity the image with the greatest sequence."""
    newest = F.max_by(F.struct(*map(column, taken.names)), column(SEQUENCE)).alias("newest")
    return taken.df.groupBy(*map(column, taken.identity)).agg(newest).select("newest.*")


def _check_owner(spark: SparkSession, table: str, query: str) -> None:
    """Check that the table is this query's; it becomes so where it is nobody's. Spark Connect does not tell the query."""
    if not query:
        return
    properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    owner = properties.get(_OWNER)
    if owner is None:
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{_OWNER}' = '{query}')")
    elif owner != query:
        raise SinkError(
            f"table {table}: it belongs to the query {owner}, this is {query}: changes of two queries, or of two checkpoints, cannot "
            "be put in order. Give each query a table of its own; to fill this one anew, drop it and start from an empty checkpoint"
        )


def _check_fits(spark: SparkSession, table: str, columns: Sequence[str]) -> None:
    there = spark.table(table).columns
    lower = {name.lower() for name in there}
    for name in columns:
        if name.lower() not in lower:
            raise SinkError(
                f"table {table}: it has no column {name!r} (it has {', '.join(there)}); add it (ALTER TABLE ... ADD COLUMN), or "
                "choose another table"
            )
    if DELETED in lower and DELETED not in columns:
        raise SinkError(
            f"table {table}: it has a column {DELETED!r}, so it was kept with deleted rows, which this sink would take for live "
            "ones; say keep_deleted=True, or choose another table"
        )
