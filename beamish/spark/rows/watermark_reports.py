"""Rows on their way to shards that follow their watermark themselves, since the query's is not theirs.

*Marks* travel with the payloads: how far a task's rows take the watermark of an input (of a merge), or how far the
stage before has come. Each shard gets each mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from beamish.kernels.reserved import REPORT
from beamish.plan import Plan
from beamish.spark.compile.stream import for_each_shard
from beamish.spark.rows.pack import NO_CLOCK, PACKED, row_packer
from beamish.spark.rows.shard_ids import shard_ids

MARKED = PACKED.append(pa.field("input", pa.int8())).append(pa.field("mark_us", pa.int64()))
"""What the operator takes. A mark: the number of the input, and where its watermark goes; elsewhere NO_INPUT."""
NO_INPUT = -1


def with_heartbeats(plan: Plan, marked: DataFrame, ticks: DataFrame) -> DataFrame:
    """Payloads and marks, and a heartbeat for every shard."""
    beats = for_each_shard(plan, ticks).select(
        "*", F.lit(NO_INPUT).cast("tinyint").alias("input"), F.lit(0).cast("bigint").alias("mark_us")
    )
    return marked.unionByName(beats)


def mark_packer(plan: Plan, number: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow`` that packs rows and then tells every shard the task's mark of its input."""
    pack_rows = row_packer(plan, streaming=True)
    ids = shard_ids(plan.shards)

    def pack_and_mark(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        marks: list[int] = []

        def rows() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                greatest = pc.max(batch[REPORT]).as_py()
                marks.extend([] if greatest is None else [greatest])
                yield batch.drop_columns([REPORT])

        for packed in pack_rows(rows()):
            n = packed.num_rows
            yield _marked([*packed.columns, _all(n, NO_INPUT, "int8"), _all(n, 0, "int64")])
        if marks:
            n = len(ids)
            shards = pa.array(ids, pa.int32())
            marked = [_all(n, number, "int8"), _all(n, max(marks), "int64")]
            yield _marked([shards, _all(n, NO_CLOCK, "int64"), pa.nulls(n, pa.binary()), *marked])

    return pack_and_mark


def _all(rows: int, value: int, dtype: str) -> pa.Array:
    return pa.array(np.full(rows, value, dtype=dtype))


def _marked(columns: Sequence[pa.Array]) -> pa.RecordBatch:
    return pa.record_batch(list(columns), schema=MARKED)
