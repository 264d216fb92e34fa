"""Packing rows into payloads, in the tasks that read them: one or a few payloads of Arrow bytes per task and shard.

Tasks also send *reports*: the watermark of an input by a task's rows, or of the upstream stage; every shard receives every
report. And *calls*, which only make Spark call a shard in this batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame

from beamish.contract.operator import Operator
from beamish.kernels.buffers import cast_table
from beamish.kernels.reserved import EVENT_TIME, IS_ROW, REPORT, UPSTREAM_WATERMARK
from beamish.spark.rows.columns import column
from beamish.spark.rows.first_batch import in_first_batch
from beamish.spark.rows.known import known
from beamish.spark.rows.shard_ids import shard_ids
from beamish.spark.rows.types import spark_schema
from beamish.spark.rows.watermark_column import SourceRows
from beamish.spark.runtime.worker_memory import spare_memory
from beamish.spark.runtime.worker_sockets import AcknowledgedFunction

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
    selected = [(column(name), f"c{i}", types.field(name).type) for i, name in enumerate(operator.reads(number))]
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
        yield from _packed(ids, operator.pack_pieces(number, _gathered(read(batches), seen)))
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
