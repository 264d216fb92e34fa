"""A batch of panes as rows of a table: the last image of each key and window in some step, flat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.contract.relation import Follows
from beamish.errors import PipelineError
from beamish.kernels.image_columns import DELETED, SEQUENCE
from beamish.spark.changelog.formats import JSON, check_merging
from beamish.spark.changelog.pane_table import PaneTable
from beamish.spark.checkpoint.offset_log import entry_digest
from beamish.spark.rows.columns import column
from beamish.spark.rows.types import arrow_type

_NESTED = (t.StructType, t.ArrayType, t.MapType)


@attrs.frozen
class Images:
    """Rows of a table, each the last image of its identity in some step.

    Attributes:
        df: identity, data, ``_sequence``, ``_deleted``.
        identity: the columns that tell rows apart.
        nested: columns that were structs, arrays or maps, and are JSON.
    """

    df: DataFrame
    identity: tuple[str, ...]
    nested: frozenset[str]

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self.df.columns

    def collect(self) -> pa.Table:
        """The rows, on the driver."""
        types = [(field.name, arrow_type(field.dataType)) for field in self.df.schema]
        return self.df.toArrow().cast(pa.schema(types))


def images(
    df: DataFrame, where: str, fields: Sequence[str], keys: Sequence[str] | None, *, as_json: bool = True
) -> Images:
    """The last images in panes, as ``bm.changelog(panes, "upsert")`` has them.

    Args:
        df: panes.
        where: what asks, for messages.
        fields: what is kept of the pane.
        keys: the columns that, with the window, tell rows apart; None: as the panes say.
        as_json: make structs, arrays and maps JSON, as text.

    Raises:
        ColumnError: they are no panes, have not what is asked for, or nothing tells rows apart.
        PipelineError: they do not say what the state of a row is, or what is gone.
    """
    table = PaneTable.read(where, df, keys)
    check_merging(table)
    if table.ledger.follows is Follows.ADDING:
        raise PipelineError(
            f"{where}: the pipeline is discarding: its panes are parts, and the second one of a window would take the place of the "
            "first; say .accumulating() or .accumulating_and_retracting()"
        )
    if not table.slot:  # one row for all of time, without keys: bounds, though null, tell it
        table = attrs.evolve(table, ledger=attrs.evolve(table.ledger, windowed=True))
    own = tuple(table.rows.select(*table.slot).columns)
    last = [F.col("pane.sequence").alias(SEQUENCE), (F.col("pane.change") == "DELETE").alias(DELETED)]
    flat = table.latest.with_data(fields=fields, flat=True, last=last)
    return _with_json(flat, own) if as_json else Images(flat, own, frozenset())


def _with_json(flat: DataFrame, identity: tuple[str, ...]) -> Images:
    nested = [field.name for field in flat.schema if isinstance(field.dataType, _NESTED)]
    for name in nested:
        flat = flat.withColumn(name, F.to_json(column(name), JSON))
    return Images(flat, identity, frozenset(nested))


def query_id(df: DataFrame) -> str:
    """The id of the query whose batch it is, as its checkpoint holds it; empty: Spark does not report it."""
    return _local(df, "sql.streaming.queryId")


def batch_entry(df: DataFrame, batch_id: int) -> str:
    """A digest of the batch's entry in the offset log of its query; empty: Spark Connect, or no batch of a query.

    A batch that is run again has the same entry. One that is planned again, from a checkpoint restored to an earlier batch, has another.
    """
    query = query_id(df)
    if not query or _local(df, "streaming.sql.batchId") != str(batch_id):
        return ""
    # The session of a batch is a clone, whose own ``streams`` does not have the query.
    spark: Any = df.sparkSession
    uuid = spark._jvm.java.util.UUID.fromString(query)  # noqa: SLF001
    running = spark._jsparkSession.sharedState().activeStreamingQueries().get(uuid)  # noqa: SLF001
    return "" if running is None else entry_digest(df.sparkSession, running.resolvedCheckpointRoot(), batch_id)


def _local(df: DataFrame, name: str) -> str:
    """A property that Spark sets while a batch runs; empty: it is not set, or not known (Spark Connect)."""
    if type(df).__module__.startswith("pyspark.sql.connect"):
        return ""
    return df.sparkSession.sparkContext.getLocalProperty(name) or ""
