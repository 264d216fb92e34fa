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
In the metadata: how many rows without event time were left out of slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.codes import factorize_rows, factorize_tuples, factorize_values, hash_rows, normalise
from beamish.kernels.groups import Groups
from beamish.kernels.ipc import from_bytes, to_bytes
from beamish.kernels.reserved import EVENT_TIME, FIRST, LAST, ROWS, SLICE
from beamish.plan import Plan
from beamish.windows.sliding import SlidingWindows

_NULL_TIMES = b"null_event_times"


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
    by_key = factorize_rows(keys, rows.num_rows)
    shard = _shards(plan, keys, by_key)[by_key.of]
    if not plan.preaggregates:
        return list(_split(rows, shard))
    return list(_split(*_aggregate(plan, rows, keys, by_key, shard)))


def unpack(payloads: Sequence[bytes]) -> tuple[pa.Table, int]:
    """The payloads of a shard as one table, and how many rows without event time were left out of it."""
    tables = [from_bytes(payload) for payload in payloads]
    left_out = sum(int((table.schema.metadata or {}).get(_NULL_TIMES, 0)) for table in tables)
    return pa.concat_tables([table.replace_schema_metadata() for table in tables]).combine_chunks(), left_out


def slice_starts(plan: Plan, event_time_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """The start of each row's slice."""
    window = plan.window
    if isinstance(window, SlidingWindows):
        return event_time_us - (event_time_us - int(window.offset) % window.slice_us) % window.slice_us
    _, start, _ = window.assign_columns(event_time_us)
    return start


def _shards(plan: Plan, keys: Sequence[pa.Array], by_key: Groups) -> NDArray[np.int32]:
    """The shard of each key, by the upper bits of its hash; the lower ones number segments within a shard."""
    first = pa.array(by_key.first())
    hashes = hash_rows([column.take(first) for column in keys], by_key.count)
    return ((hashes >> np.uint64(40)) % np.uint64(plan.shards)).astype(np.int32)


def _aggregate(
    plan: Plan,
    rows: pa.Table,
    keys: Sequence[pa.Array],
    by_key: Groups,
    shard: NDArray[np.int32],
) -> tuple[pa.Table, NDArray[np.int32], NDArray[np.int64]]:
    known = rows[EVENT_TIME].is_valid().to_numpy()
    null_times = np.zeros(0, dtype=np.int64)
    if not known.all():
        null_times = np.bincount(shard[~known])
        timed = pa.array(known)
        rows, keys = rows.filter(timed), [column.filter(timed) for column in keys]
        by_key, shard = by_key[known], shard[known]
    time = rows[EVENT_TIME].to_numpy()
    start = slice_starts(plan, time)
    groups = factorize_tuples([by_key, factorize_values(start)], len(time))
    first = groups.first()
    columns = {name: column.take(pa.array(first)) for name, column in zip(plan.key_schema.names, keys, strict=True)}
    columns[SLICE] = pa.array(start[first])
    columns[ROWS] = pa.array(groups.sizes())
    if plan.combines_timestamps:
        columns |= {FIRST: pa.array(groups.least(time)), LAST: pa.array(groups.greatest(time))}
    for bound in plan.accumulations:
        inputs = bound.inputs(rows)
        state = bound.accumulation.reduce(inputs, time, groups)
        columns |= {f"{bound.name}.{i}": column for i, column in enumerate(state)}
    return pa.table(columns), shard[first], null_times


def _split(
    table: pa.Table, shard: NDArray[np.int32], null_times: NDArray[np.int64] | None = None
) -> Iterator[tuple[int, bytes]]:
    null_times = np.zeros(0, dtype=np.int64) if null_times is None else null_times
    order = np.argsort(shard, kind="stable")
    table = table.take(pa.array(order))
    shards = np.union1d(shard, np.flatnonzero(null_times))
    starts = np.searchsorted(shard[order], shards)
    ends = np.searchsorted(shard[order], shards, side="right")
    for number, start, end in zip(shards.tolist(), starts.tolist(), ends.tolist(), strict=True):
        left_out = int(null_times[number]) if number < len(null_times) else 0
        yield number, to_bytes(table.slice(start, end - start).replace_schema_metadata({_NULL_TIMES: str(left_out)}))
