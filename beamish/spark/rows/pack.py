"""Rows to payloads, in the tasks that read them: one or a few payloads of Arrow bytes per task and shard.

Tasks also send *reports*: the watermark of an input by a task's rows, or of the upstream stage; every shard receives every
report. And *calls*, which only make Spark call a shard in this batch.

Shard ids: numbers that Spark distributes evenly over its partitions. Spark assigns a group to partition ``hash(id) mod partitions``; small
consecutive numbers are distributed badly. So the ids of n shards are the smallest numbers, from 0 on, whose hashes differ modulo n. Then

1. the ids depend on n only, not on the session, so they are stable for a checkpoint; 2. every partition has the same number of
shards if the number of partitions divides n; 3. the first id is always 0.

Known schemas for Spark Connect.

To call Python over a DataFrame's rows, Spark Connect's client needs its columns, and requests them from the server: a round trip
for each step of a plan, which is rejected within the query functions of declarative pipelines.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from beamish.contract.operator import Operator
from beamish.kernels.buffers import cast_table
from beamish.kernels.column_names import EVENT_TIME, IS_ROW, REPORT, UPSTREAM_WATERMARK
from beamish.spark.rows.schemas import spark_schema
from beamish.spark.runtime.workers import AcknowledgedFunction, spare_memory

if TYPE_CHECKING:
    from beamish.spark.rows.watermark_column import SourceRows

_MASK = 0xFFFFFFFF
FIRST_SHARD = 0


@lru_cache
def shard_ids(shards: int) -> tuple[int, ...]:
    """The ids of ``shards`` shards, by shard number."""
    ids: list[int] = []
    taken: set[int] = set()
    candidate = FIRST_SHARD
    while len(ids) < shards:
        residue = spark_hash(candidate) % shards
        if residue not in taken:
            taken.add(residue)
            ids.append(candidate)
        candidate += 1
    return tuple(ids)


def partition_of(shard: int, partitions: int) -> int:
    """The partition of a shard id (Spark 4.0 passes a numpy int, whose 32 bits are too few for the hash)."""
    return spark_hash(int(shard)) % partitions


def spark_hash(number: int) -> int:
    """Spark's ``hash`` of one int: Murmur3 with seed 42, as a signed 32-bit number."""
    h = 42 ^ (_rotate(number * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK)
    h = _rotate(h, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - 2**32 if h >= 2**31 else h


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK


_RUN = "spark.jobGroup.id"
"""The local property with the run id of Spark's streaming queries, which changes with each start."""
_BATCH = "streaming.sql.batchId"

_first_batches: dict[tuple[str, Hashable], str] = {}
"""The first batch of each run, and of each part of it, seen by this worker."""


def batch_number() -> int:
    """The batch number of the task; 0 outside of streaming queries."""
    context = TaskContext.get()
    return int((context and context.getLocalProperty(_BATCH)) or 0)


def in_first_batch(part: Hashable = None) -> bool:
    """Whether this worker has seen no other batch of the task's run.

    Args:
        part: a part of the run, such as a stage and partition; None: the whole run.

    In the first batch of a run it is true in all workers, including retried tasks; in a worker that joins later it is true once too.
    """
    context = TaskContext.get()
    run, batch = (None, None) if context is None else map(context.getLocalProperty, (_RUN, _BATCH))
    if run is None or batch is None:
        return False
    return _first_batches.setdefault((run, part), batch) == batch


def known(df: DataFrame, schema: t.StructType) -> DataFrame:
    """The DataFrame with its schema cached.

    Args:
        df: the rows.
        schema: their columns, as they are.
    """
    connect: Any = df
    if hasattr(connect, "_cached_schema"):  # where the client caches the schema
        connect._cached_schema = schema  # noqa: SLF001
    return df


PACKED = pa.schema(
    [
        ("shard", pa.int32()),
        ("clock_us", pa.int64()),
        ("payload", pa.binary()),
        ("input", pa.int8()),
        ("report_us", pa.int64()),
    ]
)
"""The operator's input: payloads; heartbeats, whose clock is not NO_CLOCK; reports, whose input is not NO_INPUT."""
NO_CLOCK = -1
NO_INPUT = -1

Batches = Iterable[pa.RecordBatch]
Packer = Callable[[Batches], Iterator[pa.RecordBatch]]

_PIECE_ROWS = 2**17
_PIECE_BYTES = 64 * 2**20
"""Rows are packed in chunks of this size, while Spark reads the next ones."""
_SENT_BYTES = 2**20
"""Payloads are sent when they reach this total size."""


def select_read(operator: Operator, number: int, rows: SourceRows, *, report: bool) -> DataFrame:
    """The columns read by ``source_packer``: those that the operator reads, the event time, and IS_ROW and REPORT.

    Columns are named by number: ``mapInArrow`` does not support dots in names.
    """
    types = operator.takes[number].schema
    assert types is not None  # noqa: S101 - it is bound
    from beamish.spark.rows.columns import nested

    fields = [types.field(name) for name in operator.reads(number)]
    selected = [(nested(field), f"c{i}", field.type) for i, field in enumerate(fields)]
    selected.append((rows.event_time_us, EVENT_TIME, pa.int64()))
    if rows.is_row is not None:
        selected.append((rows.is_row, IS_ROW, pa.bool_()))
    if report and rows.report_us is not None:
        selected.append((rows.report_us, REPORT, pa.int64()))
    schema = pa.schema([(name, type_) for _, name, type_ in selected])
    return known(rows.df.select(*(one.alias(name) for one, name, _ in selected)), spark_schema(schema))


def source_packer(
    operator: Operator, number: int, *, calls: Sequence[int] = (), first_calls: Sequence[int] = ()
) -> Packer:
    """A function for ``mapInArrow`` that packs the rows of a source.

    The rows have the columns of ``select_read``.

    Args:
        operator: of the consuming stage.
        number: the number of the input.
        calls: the ids of the shards that each task with rows calls. In a stream the first one, so that it is in every batch with
            rows, and the shard count of a checkpoint is checked before anything is written (``operator/notes.py``); all, if
            earlier reports must reach all shards at once.
        first_calls: those to call in the first batch of a run: all with timers, since a changed pipeline may be due earlier.
    """
    schema = operator.takes[number].schema
    assert schema is not None  # noqa: S101 - it is bound
    carried = pa.schema([*(schema.field(name) for name in operator.reads(number)), (EVENT_TIME, pa.int64())])
    ids = shard_ids(operator.shards)

    def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
        spare_memory()
        seen = _Seen()
        yield from _packed(ids, operator.pack_pieces(number, _tables(batches, carried, seen)))
        if seen.reports:
            yield _report(ids, number, max(seen.reports))
        if seen.rows and calls:
            called = first_calls if first_calls and in_first_batch() else calls
            yield _payloads([(shard, None) for shard in called])

    return AcknowledgedFunction(pack)


def pane_packer(operator: Operator, number: int, *, streaming: bool, read: Packer) -> Packer:
    """A function for ``mapInArrow`` that packs the panes of a stage.

    In a stream one task, even without panes, calls all shards, so that each sees every batch.

    Args:
        operator: of the consuming stage.
        number: the number of the input.
        streaming: whether it is a stream.
        read: decodes panes from bytes, or passes them unchanged.
    """
    ids = shard_ids(operator.shards)

    def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
        spare_memory()
        seen = _Seen()
        panes = map(operator.takes[number].with_fields, _gathered(read(batches), seen))
        yield from _packed(ids, operator.pack_pieces(number, panes))
        if seen.reports:
            yield _report(ids, number, max(seen.reports))
        context = TaskContext.get()
        if streaming and context is not None and context.partitionId() == 0:
            yield _payloads([(shard, None) for shard in ids])

    return AcknowledgedFunction(pack)


@attrs.define
class _Seen:
    """The input of a task so far.

    Attributes:
        rows: number of rows.
        reports: the watermark of the input, by the rows or the upstream stage.
    """

    rows: int = 0
    reports: list[int] = attrs.Factory(list)


def _gathered(batches: Iterator[pa.RecordBatch], seen: _Seen) -> Iterator[pa.Table]:
    """Panes in pieces."""
    held: list[pa.Table] = []
    rows = 0
    for batch in batches:
        panes = pa.Table.from_batches([batch])
        if UPSTREAM_WATERMARK in panes.schema.names:
            seen.reports += panes[UPSTREAM_WATERMARK].drop_null().to_pylist()
            panes = panes.filter(panes[UPSTREAM_WATERMARK].is_null()).drop_columns([UPSTREAM_WATERMARK])
        held.append(panes)
        rows += panes.num_rows
        if rows >= _PIECE_ROWS:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if rows:
        yield pa.concat_tables(held)


def _tables(batches: Batches, carried: pa.Schema, seen: _Seen) -> Iterator[pa.Table]:
    """Rows in pieces."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for arrived in batches:
        batch = arrived
        if REPORT in batch.schema.names:
            greatest = pc.max(batch[REPORT]).as_py()
            seen.reports += [] if greatest is None else [greatest]
            batch = batch.drop_columns([REPORT])
        if IS_ROW in batch.schema.names:
            batch = batch.filter(batch[IS_ROW]).drop_columns([IS_ROW])
        if not batch.num_rows:
            continue
        held.append(batch)
        seen.rows += batch.num_rows
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _PIECE_ROWS or size >= _PIECE_BYTES:
            yield _table(held, carried)
            held, rows, size = [], 0, 0
    if held:
        yield _table(held, carried)


def _table(batches: list[pa.RecordBatch], carried: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches(batches).rename_columns(carried.names)
    return table if table.schema.equals(carried) else cast_table(table, carried)


def _packed(ids: Sequence[int], packed: Iterable[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
    """Payloads for shards by number, several at once."""
    held: list[tuple[int, bytes | None]] = []
    size = 0
    for shard, payload in packed:
        held.append((ids[shard], payload))
        size += len(payload)
        if size >= _SENT_BYTES:
            yield _payloads(held)
            held, size = [], 0
    if held:
        yield _payloads(held)


def _payloads(payloads: Sequence[tuple[int, bytes | None]]) -> pa.RecordBatch:
    """Payloads, or calls (None), for shards."""
    count = len(payloads)
    shard = pa.array([shard for shard, _ in payloads], pa.int32())
    payload = pa.array([payload for _, payload in payloads], pa.binary())
    return pa.record_batch(
        [shard, _all(count, NO_CLOCK), payload, _all(count, NO_INPUT, "int8"), _all(count, 0)], PACKED
    )


def _report(ids: Sequence[int], number: int, report_us: int) -> pa.RecordBatch:
    """A report for every shard."""
    count = len(ids)
    columns = [
        pa.array(ids, pa.int32()),
        _all(count, NO_CLOCK),
        pa.nulls(count, pa.binary()),
        _all(count, number, "int8"),
        _all(count, report_us),
    ]
    return pa.record_batch(columns, PACKED)


def _all(count: int, value: int, dtype: str = "int64") -> pa.Array:
    return pa.array(np.full(count, value, dtype=dtype))
