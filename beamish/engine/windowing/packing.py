"""Rows on their way to their shard: one payload of Arrow bytes for each shard of a batch.

A payload holds rows, or, where the meaning allows it (``Plan.preaggregates``), *slices*: what the rows of one key
and one slice of time came to. A slice is the piece of time that a window is a whole number of: for sliding windows
the greatest common divisor of size and period, else the window itself.

columns of rows:    the plan's columns, and
    __event_time_us     int64; null where the row has no event time
columns of slices:  the key columns, the accumulators' state, and
    __slice_us          int64: the start of the slice
    __rows              int64: how many rows it holds
    __first_us, __last_us   int64: their earliest and latest event time (only under a timestamp combiner)
In the metadata: how many rows were left out of slices, without event time and with one that is out of range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.engine.event_times import in_range
from beamish.kernels.codes import code_rows, code_tuples, code_values, hash_rows, normalise
from beamish.kernels.reserved import EVENT_TIME, FIRST, LAST, ROWS, SLICE
from beamish.plan import Plan
from beamish.windows.sliding import SlidingWindows

_NULL_TIMES, _OUT_OF_RANGE = b"null_event_times", b"event_times_out_of_range"
_WRITE = pa.ipc.IpcWriteOptions()


def pack(plan: Plan, rows: pa.Table) -> list[tuple[int, bytes]]:
    """Pack rows, one payload a shard.

    Args:
        plan: the pipeline's plan.
        rows: the plan's columns and ``EVENT_TIME``.

    Returns:
        the number of each shard that has rows, and its payload.
    """
    if not rows.num_rows:
        return []
    rows = rows.select([*plan.columns, EVENT_TIME]).combine_chunks()
    keys = [normalise(column.combine_chunks()) for column in rows.select(plan.key_schema.names).columns]
    key, distinct = code_rows(keys, rows.num_rows)
    shard = _shards(plan, keys, key, distinct)[key]
    if not plan.preaggregates:
        return list(_split(rows, shard))
    return list(_split(*_aggregate(plan, rows, keys, (key, distinct), shard)))


def unpack(payloads: Sequence[bytes]) -> tuple[pa.Table, int, int]:
    """The payloads of a shard as one table, and how many rows were left out of it.

    Returns:
        table: rows or slices.
        untimed: number of rows without event time that were left out.
        out_of_range: number of rows left out since their event time is out of range.
    """
    tables = []
    for payload in payloads:
        with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
            tables.append(reader.read_all())
    untimed, out_of_range = (
        sum(int((table.schema.metadata or {}).get(name, 0)) for table in tables)
        for name in (_NULL_TIMES, _OUT_OF_RANGE)
    )
    table = pa.concat_tables([table.replace_schema_metadata() for table in tables]).combine_chunks()
    return table, untimed, out_of_range


def slice_starts(plan: Plan, event_time_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """The start of each row's slice."""
    window = plan.window
    if isinstance(window, SlidingWindows):
        return event_time_us - (event_time_us - int(window.offset) % window.slice_us) % window.slice_us
    _, start, _ = window.assign_columns(event_time_us)
    return start


def first_of_each(codes: NDArray[np.int64], distinct: int) -> NDArray[np.int64]:
    """Where each code, 0 to distinct - 1, appears first."""
    first = np.empty(distinct, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def _shards(plan: Plan, keys: Sequence[pa.Array], key: NDArray[np.int64], distinct: int) -> NDArray[np.int32]:
    """The shard of each key, by the upper bits of its hash; the lower ones number segments within a shard."""
    first = pa.array(first_of_each(key, distinct))
    hashes = hash_rows([column.take(first) for column in keys], distinct)
    return ((hashes >> np.uint64(40)) % np.uint64(plan.shards)).astype(np.int32)


def _aggregate(
    plan: Plan,
    rows: pa.Table,
    keys: Sequence[pa.Array],
    coded: tuple[NDArray[np.int64], int],
    shard: NDArray[np.int32],
) -> tuple[pa.Table, NDArray[np.int32], dict[bytes, NDArray[np.int64]]]:
    key, distinct = coded
    known = rows[EVENT_TIME].is_valid().to_numpy()
    inside = known & in_range(pc.fill_null(rows[EVENT_TIME], 0).to_numpy())
    left_out = {}
    if not inside.all():
        left_out = {_NULL_TIMES: np.bincount(shard[~known]), _OUT_OF_RANGE: np.bincount(shard[known & ~inside])}
        known, timed = inside, pa.array(inside)
        rows, keys, key, shard = rows.filter(timed), [column.filter(timed) for column in keys], key[known], shard[known]
    time = rows[EVENT_TIME].to_numpy()
    start = slice_starts(plan, time)
    group, groups = code_tuples([(key, distinct), code_values(start)], len(time))
    first = first_of_each(group, groups)
    columns = {name: column.take(pa.array(first)) for name, column in zip(plan.key_schema.names, keys, strict=True)}
    columns[SLICE] = pa.array(start[first])
    columns[ROWS] = pa.array(np.bincount(group, minlength=groups))
    if plan.combines_timestamps:
        earliest, latest = time[first].copy(), time[first].copy()
        np.minimum.at(earliest, group, time)
        np.maximum.at(latest, group, time)
        columns |= {FIRST: pa.array(earliest), LAST: pa.array(latest)}
    for bound in plan.accumulations:
        inputs = bound.inputs(rows)
        state = bound.accumulation.reduce(inputs, time, group, groups)
        columns |= {f"{bound.name}.{i}": column for i, column in enumerate(state)}
    return pa.table(columns), shard[first], left_out


def _split(
    table: pa.Table, shard: NDArray[np.int32], left_out: Mapping[bytes, NDArray[np.int64]] | None = None
) -> Iterator[tuple[int, bytes]]:
    left_out = left_out or {}
    order = np.argsort(shard, kind="stable")
    table = table.take(pa.array(order))
    shards = np.unique(np.concatenate([shard, *(np.flatnonzero(count) for count in left_out.values())]))
    starts = np.searchsorted(shard[order], shards)
    ends = np.searchsorted(shard[order], shards, side="right")
    for number, start, end in zip(shards.tolist(), starts.tolist(), ends.tolist(), strict=True):
        counts = {name: str(count[number]) for name, count in left_out.items() if number < len(count)}
        yield number, _bytes(table.slice(start, end - start).replace_schema_metadata(counts))


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WRITE) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
