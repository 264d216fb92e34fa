"""A table of Spark's that takes MERGE INTO - Delta, Iceberg and others - kept as the panes say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from beamish.addresses import printable
from beamish.errors import OptionError
from beamish.sinks.options import read_fields, read_flag, read_keys, read_text

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
    """A function for ``foreachBatch`` that keeps a table of Spark's as the panes say, by ``MERGE INTO``.

    The net change of a batch, one row per key and window, is merged where its sequence is greater than the one stored: one commit
    of the table per batch, and none of a batch that is run again. Structs, arrays and maps stay as they are.

    Args:
        table: the table as SQL names it: ``hourly``, ``catalog.stats.hourly``, ``delta.`/folder/hourly```.
        keep_deleted: keep rows that are deleted, marked by a column ``_deleted``; then a batch of any age may come again, without
            it only the last one.
        create: make the table if it is not there, in this format: ``"delta"`` or ``"iceberg"``. None: it is there.
        fields, keys: as of ``bm.sinks.sql``.

    Returns:
        the function, a value.

    Raises:
        OptionError: an option is none of these.

    Example:
        ``panes.writeStream.foreachBatch(bm.sinks.merge("stats.hourly", create="delta")).option("checkpointLocation", ...)``
    """
    call = f"sinks.merge({printable(table)})"
    read_text("sinks.merge", "table", table, "a table as SQL names it, such as 'stats.hourly'")
    if (
        create is not None
        and not read_text(call, "create", create, "a format, such as 'delta' or 'iceberg'").isidentifier()
    ):
        raise OptionError(f"{call}: create={printable(create)} must be a format, such as 'delta' or 'iceberg', or None")
    return MergeSink(
        table, read_flag(call, "keep_deleted", keep_deleted), create, read_fields(call, fields), read_keys(call, keys)
    )


@attrs.frozen
class MergeSink:
    """What ``bm.sinks.merge`` gives: call it with a batch and its number, or hand it to ``foreachBatch``.

    Attributes:
        table, keep_deleted, create, fields, keys: as ``bm.sinks.merge`` takes them.
    """

    table: str = attrs.field(repr=printable)
    keep_deleted: bool
    create: str | None
    fields: tuple[str, ...]
    keys: tuple[str, ...] | None

    def __call__(self, batch_df: DataFrame, batch_id: int) -> None:
        """Merge a batch of panes into the table.

        Raises:
            ColumnError: they are no panes.
            SinkError: the table does not fit, or is another query's.
        """
        from beamish.spark.merging import merge_batch

        merge_batch(self, batch_df, batch_id)

    def rebuild(self, panes: DataFrame, *, checkpoint: str) -> None:
        """Fill the table again, in one commit, from all panes that a stopped query has emitted, as ``SqlSink.rebuild`` does.

        Args:
            panes: a batch DataFrame of all panes of the query.
            checkpoint: the query's checkpoint.

        Raises:
            ColumnError, SinkError: as for a batch.
            StateError: the folder is not the checkpoint of a query that has committed a batch.
        """
        from beamish.spark.merging import rebuild

        rebuild(self, panes, checkpoint)
