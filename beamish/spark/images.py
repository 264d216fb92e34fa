"""The last version of each row in a batch, flattened for a table."""

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
    """Rows of a table, each the last version of its identity in the batch.

    Attributes:
        df: identity, data, ``_sequence``, ``_deleted``.
        identity: the columns that identify a row.
        nested: structs, arrays and maps converted to JSON.
    """

    df: DataFrame
    identity: tuple[str, ...]
    nested: frozenset[str]

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self.df.columns

    def collect(self) -> pa.Table:
        """Collect the rows on the driver."""
        types = [(field.name, arrow_type(field.dataType)) for field in self.df.schema]
        return self.df.toArrow().cast(pa.schema(types))


def images(
    df: DataFrame, where: str, fields: Sequence[str], keys: Sequence[str] | None, *, as_json: bool = True
) -> Images:
    """The last version of each row in panes, as in ``bm.changelog(panes, "upsert")``.

    Args:
        df: panes.
        where: the call, for messages.
        fields: fields of the pane to store.
        keys: the columns that, with the window, identify a row; None: from the panes.
        as_json: convert structs, arrays and maps to JSON text.

    Raises:
        ColumnError: not panes, a missing field, or rows without identity.
        PipelineError: they do not determine the current rows.
    """
    table = PaneTable.read(where, df, keys)
    check_merging(table)
    if table.ledger.follows is Follows.ADDING:
        raise PipelineError(
            f"{where}: the pipeline is discarding: its panes are increments, and the second one of a window would replace the first; use .accumulating() or .accumulating_and_retracting()"
        )
    if not table.slot:  # a global window without keys: bounds, though null, identify the row
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
    """The id of the query of a batch, as in its checkpoint; empty: Spark does not report it."""
    return _local(df, "sql.streaming.queryId")


def batch_entry(df: DataFrame, batch_id: int) -> str:
    """A digest of the batch's entry in the offset log; empty: Spark Connect, or not a batch of a query.

    A replayed batch has the same entry. One planned again, from a checkpoint restored to an earlier batch, has another.
    """
    query = query_id(df)
    if not query or _local(df, "streaming.sql.batchId") != str(batch_id):
        return ""
    # The session of a batch is a clone, whose ``streams`` lacks the query.
    spark: Any = df.sparkSession
    uuid = spark._jvm.java.util.UUID.fromString(query)  # noqa: SLF001
    running = spark._jsparkSession.sharedState().activeStreamingQueries().get(uuid)  # noqa: SLF001
    return "" if running is None else entry_digest(df.sparkSession, running.resolvedCheckpointRoot(), batch_id)


def _local(df: DataFrame, name: str) -> str:
    """A property that Spark sets while a batch runs; empty: not set, or unavailable (Spark Connect)."""
    if type(df).__module__.startswith("pyspark.sql.connect"):
        return ""
    return df.sparkSession.sparkContext.getLocalProperty(name) or ""
