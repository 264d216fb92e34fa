"""One row per change, with the row before and after it.

A step emits an UPDATE_BEFORE right before its UPDATE_AFTER. In a stream they are still adjacent in a task, so they are paired
without a shuffle. In a stored table they may be anywhere: there the row before is that of the key with the next smaller
``sequence``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.contract.relation import Follows
from beamish.errors import PipelineError
from beamish.kernels.reserved import PREFIX
from beamish.spark.changelog.pane_table import PaneTable
from beamish.spark.rows.columns import column
from beamish.spark.runtime.worker_sockets import AcknowledgedFunction

_KEY = PREFIX + "key"


def with_images(table: PaneTable, fields: Sequence[str]) -> DataFrame:
    """Rows of ``change``, ``before`` and ``after``, without UPDATE_BEFORE rows, which are in the rows that follow them."""
    rows = table.rows.select(
        F.col("pane.change").alias("change"),
        F.struct(*table.data(fields)).alias("data"),
        F.col("pane.sequence").alias("sequence"),
        F.struct(F.lit(0), *map(column, table.ledger.keys)).alias(_KEY),
    )
    if table.rows.isStreaming:
        data = rows.schema["data"].dataType
        out = t.StructType([t.StructField("change", t.StringType()), *(t.StructField(name, data) for name in _IMAGES)])
        return rows.select("change", "data").mapInArrow(AcknowledgedFunction(neighbours(table.call)), out)
    ordered = Window.partitionBy(_KEY).orderBy("sequence")
    earlier = F.lag("change").over(ordered), F.lag("data").over(ordered)
    deletes, updates = F.col("change") == "DELETE", F.col("change") == "UPDATE_AFTER"
    before = F.when(deletes, F.col("data")).when(updates & (earlier[0] == "UPDATE_BEFORE"), earlier[1])
    if table.ledger.follows is Follows.RETRACTING:
        missing = F.raise_error(_NOT_FOUND.format(call=table.call)).cast(rows.schema["data"].dataType)
        before = before.when(updates, missing)
    before = before.alias("before")
    after = F.when(~deletes, F.col("data")).alias("after")
    return rows.select("change", before, after).where("change <> 'UPDATE_BEFORE'")


_IMAGES = ("before", "after")
_NOT_FOUND = "{call}: an UPDATE_AFTER without an UPDATE_BEFORE right before it in its key: rows are missing from the table; or its keys are unknown, since it does not keep column metadata: pass keys=[...], its key columns"


def neighbours(call: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: rows of ``change`` and ``data`` to rows of ``change``, ``before`` and ``after``."""

    def join(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = None
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            rows = rows if held is None else pa.concat_tables([held, rows])
            if not rows.num_rows:
                continue
            last = rows["change"][-1].as_py()
            held = rows.slice(rows.num_rows - 1) if last == "UPDATE_BEFORE" else None
            rows = rows if held is None else rows.slice(0, rows.num_rows - 1)
            yield from _joined(call, rows.combine_chunks()).to_batches()
        if held is not None:
            raise _parted(call)

    return join


def _joined(call: str, rows: pa.Table) -> pa.Table:
    """Rows up to the last one that is not an UPDATE_BEFORE."""
    is_before, is_update, deletes = (
        np.asarray(pa.compute.equal(rows["change"], name)) for name in ("UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")
    )
    if (is_before[:-1] & ~is_update[1:]).any():
        raise _parted(call)
    at = np.flatnonzero(~is_before)
    follows = np.append(False, is_before[:-1])[at]
    of_before = pa.array(np.where(deletes[at], at, at - 1), mask=~(deletes[at] | follows))
    of_after = pa.array(at, mask=deletes[at])
    data = rows["data"].combine_chunks()
    return pa.table(
        [rows["change"].take(pa.array(at)), data.take(of_before), data.take(of_after)], ["change", *_IMAGES]
    )


def _parted(call: str) -> PipelineError:
    return PipelineError(
        f"{call}: an UPDATE_BEFORE without an UPDATE_AFTER right after it: the rows of this stream are not in the pipeline's order. Call it right after the pipeline; for a stored table or shuffled rows call it in foreachBatch, where rows are matched by pane.sequence"
    )
