"""The live panes of a table of panes (docs/rules/changelogs.md#live-panes)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from beamish.contract.relation import Follows
from beamish.errors import PipelineError
from beamish.kernels.reserved import PREFIX
from beamish.spark.changelog.formats import check_merging
from beamish.spark.changelog.pane_table import PaneTable, check_field
from beamish.spark.rows.columns import column

_ROW, _NET, _LAST = PREFIX + "row", PREFIX + "net", PREFIX + "last"


def live(panes: DataFrame, keys: Sequence[str] | None, as_of_us: int | None) -> DataFrame:
    """The live panes of a batch DataFrame, at the end or as of a watermark, microseconds; see ``bm.live``.

    Raises:
        OptionError, ColumnError, PipelineError: unsuitable panes or invalid keys.
    """
    call = "live(panes)"
    table = PaneTable.read(call, panes, keys)
    if panes.isStreaming:
        raise PipelineError(
            f"{call} of a stream: live panes are defined over all rows so far; write them to a table and call it on that, or maintain a table by changelog(panes, format='upsert')"
        )
    check_merging(table)
    rows = table.rows.drop("dropped")
    if as_of_us is not None:
        check_field(call, rows.schema, "watermark")
        by = F.col("pane.watermark")
        rows = rows.where(by.isNull() | (by <= F.timestamp_micros(F.lit(as_of_us))))
    table = PaneTable(call, rows, table.ledger, table.is_known)
    found = _found(table, checked=not table.is_known and keys is None)
    return (
        found.withMetadata("pane", attrs.evolve(table.ledger, follows=Follows.ONCE).metadata)
        if table.is_known
        else found
    )


def _found(table: PaneTable, *, checked: bool) -> DataFrame:
    ledger = table.ledger
    if ledger.follows is Follows.ADDING:
        return table.rows.where("pane.kind = 'PANE'")
    if ledger.slot is not None:
        return _latest(table, checked=checked)
    if ledger.follows is Follows.REPLACING:
        return _last_of_bags(table)
    return _left_over(table)


def _latest(table: PaneTable, *, checked: bool) -> DataFrame:
    """The row with the greatest sequence of each slot, if it is a pane.

    ``checked``: the rows have no metadata, so uniqueness per slot must be verified.
    """
    columns = table.rows.columns
    row = F.max_by(F.struct(*map(column, columns)), F.col("pane.sequence")).alias(_ROW)
    by = F.when(F.col("pane.change") == "INSERT", 1).when(F.col("pane.change") == "DELETE", -1)
    found = table.rows.groupBy(*table.slot).agg(row, F.sum(by).alias(_NET))
    is_live = F.col(f"{_ROW}.pane.kind") == "PANE"
    if checked:
        error = F.raise_error(
            f"{table.call}: a key and window has several live panes, as from a discarding pipeline, a join or an as-of join; which is unknown, since the table does not keep column metadata: pass keys=[...], the columns that identify a row"
        )
        is_live = F.when(F.col(_NET) > 1, error.cast("boolean")).otherwise(is_live)
    return found.where(is_live).select(f"{_ROW}.*")


def _left_over(table: PaneTable) -> DataFrame:
    """Live rows of a bag, each as often as it was emitted and not retracted, with its latest numbers."""
    data = [name for name in table.rows.columns if name not in ("pane", "dropped")]
    sign = F.when(F.col("pane.kind") == "PANE", 1).otherwise(-1)
    # A retraction repeats the numbers of its pane, except its kind and watermark.
    numbers = [f"pane.{name}" for name in ("timing", "index", "on_time_index", "is_first", "is_last")]
    equal = [*map(column, data), *(F.col(name).alias(PREFIX + name.replace(".", "_")) for name in numbers)]
    pane = F.max_by(F.col("pane"), F.when(F.col("pane.kind") == "PANE", F.col("pane.sequence"))).alias("pane")
    found = table.rows.groupBy(*equal).agg(pane, F.sum(sign).alias(_NET)).where(F.col(_NET) > 0)
    names = [column(name) for name in table.rows.columns]
    return found.withColumn(_NET, F.explode(F.sequence(F.lit(1), F.col(_NET)))).select(*names)


def _last_of_bags(table: PaneTable) -> DataFrame:
    """The rows of the last pane of each key and window."""
    window = Window.partitionBy(*map(column, table.ledger.keys), *table.bounds)
    last = F.max("pane.index").over(window)
    return table.rows.withColumn(_LAST, last).where(F.col(_LAST) == F.col("pane.index")).drop(_LAST)
