"""Rows to payloads, in the tasks that read them: one or a few payloads of Arrow bytes a task and shard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from beamish.engine.windowing.several import pack_each
from beamish.kernels.reserved import EVENT_TIME, IS_ROW
from beamish.plan import Plan
from beamish.spark.rows.shard_ids import FIRST_SHARD, shard_ids

PACKED = pa.schema([("shard", pa.int32()), ("clock_us", pa.int64()), ("payload", pa.binary())])
"""What the operator takes. Rows: clock_us is NO_CLOCK. Heartbeats: the payload is null."""
NO_CLOCK = -1

_MOST_ROWS = 500_000
_MOST_BYTES = 64 * 2**20


def row_packer(plan: Plan, *, streaming: bool) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow`` that packs rows; where there is a column ``IS_ROW``, those of which it is false are passed over.

    In a stream each task that has rows also calls on the first shard: it is then in every batch with rows, and so
    the shard count of a checkpoint is checked before anything is written (``shard_notes``). In a later stage one task,
    rows or none, calls on all shards, so that each sees every batch.
    """
    carried = pa.schema([*plan.schema, (EVENT_TIME, pa.int64())])
    ids = shard_ids(plan.shards)

    def pack_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen = False
        for rows in _tables(batches, carried):
            seen = True
            yield _packed([(ids[shard], payload) for shard, payload in pack_each(plan, rows)])
        context = TaskContext.get()
        if streaming and plan.later and context is not None and context.partitionId() == 0:
            yield _packed([(shard, None) for shard in ids])
        elif seen and streaming:
            yield _packed([(FIRST_SHARD, None)])

    return pack_rows


def _tables(batches: Iterable[pa.RecordBatch], carried: pa.Schema) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for arrived in batches:
        batch = arrived
        if IS_ROW in arrived.schema.names:
            batch = arrived.filter(arrived[IS_ROW]).drop_columns([IS_ROW])
        if not batch.num_rows:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _MOST_ROWS or size >= _MOST_BYTES:
            yield _table(held, carried)
            held, rows, size = [], 0, 0
    if held:
        yield _table(held, carried)


def _table(batches: list[pa.RecordBatch], carried: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches(batches).rename_columns(carried.names)
    return table if table.schema.equals(carried) else table.cast(carried)


def _packed(payloads: list[tuple[int, bytes | None]]) -> pa.RecordBatch:
    shard = pa.array([shard for shard, _ in payloads], pa.int32())
    clock = pa.array(np.full(len(payloads), NO_CLOCK, dtype=np.int64))
    return pa.record_batch([shard, clock, pa.array([payload for _, payload in payloads], pa.binary())], schema=PACKED)
