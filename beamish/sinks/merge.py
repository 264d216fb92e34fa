"""A Spark table that supports MERGE INTO - Delta, Iceberg and others - with the state of the panes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from beamish.addresses import printable
from beamish.errors import OptionError
from beamish.sinks.options import OfDriver, read_fields, read_flag, read_keys, read_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def merge(
    table: str,
    *,
    keep_deleted: bool = False,
    create: str | None = None,
    fields: Sequence[str] = (),
    keys: Sequence[str] | None = None,
) -> MergeSink:
    """A function for ``foreachBatch`` that maintains a Spark table from panes, by ``MERGE INTO``.

    The net change of a batch, one row per key and window, is merged if its sequence is greater than the stored one, in one
    commit with the batch's mark. The values of a replayed batch replace those of its first run. Structs, arrays and maps are stored as they are.

    Args:
        table: the SQL name of the table: ``delta.`/folder/hourly```, ``catalog.stats.hourly``; ``hourly`` only if the default catalog
            outlives the driver.
        keep_deleted: keep deleted rows, marked by a column ``_deleted``. Delta and Iceberg refuse a batch older than the
            last. In other formats such a batch restores deleted rows that were not kept.
        create: create the table if it does not exist, in this format: ``"delta"`` or ``"iceberg"``. None: it exists.
        fields, keys: as for ``bm.sinks.sql``.

    Returns:
        the function, a value.

    Raises:
        OptionError: an option is invalid.

    Example:
        ``panes.writeStream.foreachBatch(bm.sinks.merge("stats.hourly", create="delta")).option("checkpointLocation", ...)``
    """
    call = f"sinks.merge({printable(table)})"
    read_text("sinks.merge", "table", table, "a SQL table name, such as 'stats.hourly'")
    if (
        create is not None
        and not read_text(call, "create", create, "a format, such as 'delta' or 'iceberg'").isidentifier()
    ):
        raise OptionError(f"{call}: create={printable(create)} must be a format, such as 'delta' or 'iceberg', or None")
    return MergeSink(
        table, read_flag(call, "keep_deleted", keep_deleted), create, read_fields(call, fields), read_keys(call, keys)
    )


@attrs.frozen
class MergeSink(OfDriver):
    """The function of ``bm.sinks.merge``: call it with a batch and its number, or pass it to ``foreachBatch``.

    Attributes:
        table, keep_deleted, create, fields, keys: as for ``bm.sinks.merge``.
    """

    table: str = attrs.field(repr=printable)
    keep_deleted: bool
    create: str | None
    fields: tuple[str, ...]
    keys: tuple[str, ...] | None

    def __call__(self, batch_df: DataFrame, batch_id: int) -> None:
        """Merge a batch of panes into the table.

        Raises:
            ColumnError: not panes.
            SinkError: the table does not match, belongs to another query, or was changed by others; or the batch does not follow
                the last one.
        """
        from beamish.spark.merging import merge_batch

        merge_batch(self, batch_df, batch_id)

    def rebuild(self, panes: DataFrame, *, checkpoint: str) -> None:
        """Rebuild the table, in one commit, from all panes that a stopped query has emitted, like ``SqlSink.rebuild``.

        Args:
            panes: a batch DataFrame of all panes of the query.
            checkpoint: the query's checkpoint.

        Raises:
            ColumnError, SinkError: as for a batch.
            StateError: the folder is not the checkpoint of a query that has committed a batch.
        """
        from beamish.spark.merging import rebuild

        rebuild(self, panes, checkpoint)
