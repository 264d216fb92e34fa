"""Rows on their way to their shard: one payload of Arrow bytes per shard of a batch.

A payload holds rows, or, where the meaning allows it (``WindowPlan.preaggregates``), *slices*: the accumulators of
the rows of one key and one slice of time. Windows consist of whole slices (``WindowOption.slices``).

columns of rows:    the plan's columns, and
    EVENT_TIME      int64; null where the row has no event time
columns of slices:  the key columns, the accumulators' state, and
    SLICE           int64: the start of the slice
    ROWS            int64: number of its rows
    FIRST, LAST     int64: their earliest and latest event time (only under a timestamp combiner)
metadata (JSON):
    input           the number of the input that the rows are of
    windowings      the numbers of the windowings that take them; absent where there is one without a name
    untimed         number of rows without event time that were left out of slices
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.kernels.codes import code_rows, code_tuples, code_values, hash_rows, normalise
from beamish.kernels.ipc import from_bytes, to_bytes
from beamish.kernels.reserved import EVENT_TIME, FIRST, LAST, ROWS, SLICE
from beamish.plan.window_plan import WindowPlan

_ABOUT = b"beamish"


def pack(plan: WindowPlan, number: int, rows: pa.Table, **about: Any) -> Iterator[tuple[int, bytes]]:
    """Pack rows, one payload per shard.

    Args:
        plan: the stage's plan.
        number: the number of the input that they are of.
        rows: the plan's columns and ``EVENT_TIME``.
        about: what the payloads say of themselves beside that.

    Returns:
        the number of each shard that has rows, and its payload.
    """
    if not rows.num_rows:
        return
    rows = rows.select([*plan.columns, EVENT_TIME]).combine_chunks()
    keys = [normalise(column.combine_chunks()) for column in rows.select(plan.key_schema.names).columns]
    key, distinct = code_rows(keys, rows.num_rows)
    shard = _shards(plan, keys, key, distinct)[key]
    untimed = np.zeros(0, dtype=np.int64)
    if plan.preaggregates:
        rows, shard, untimed = _aggregate(plan, rows, keys, (key, distinct), shard)
    for to, table in _split(rows, shard, untimed):
        left_out = int(untimed[to]) if to < len(untimed) else 0
        said = json.dumps({"input": number, "untimed": left_out, **about})
        yield to, to_bytes(table.replace_schema_metadata({_ABOUT: said}))


def about(payload: bytes) -> dict[str, Any]:
    """What a payload says of itself."""
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return json.loads(reader.schema.metadata[_ABOUT])  # type: ignore[no-any-return]


def unpack(payloads: Sequence[bytes]) -> tuple[pa.Table, int]:
    """The payloads of a shard as one table, and how many rows without event time were left out of it."""
    tables = [from_bytes(payload) for payload in payloads]
    untimed = sum(int(json.loads(table.schema.metadata[_ABOUT])["untimed"]) for table in tables)
    return pa.concat_tables([table.replace_schema_metadata() for table in tables]).combine_chunks(), untimed


def first_of_each(codes: NDArray[np.int64], distinct: int) -> NDArray[np.int64]:
    """Where each code, 0 to distinct - 1, appears first."""
    first = np.empty(distinct, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def _shards(plan: WindowPlan, keys: Sequence[pa.Array], key: NDArray[np.int64], distinct: int) -> NDArray[np.int32]:
    """The shard of each key, by the upper bits of its hash; the lower ones number segments within a shard."""
    first = pa.array(first_of_each(key, distinct))
    hashes = hash_rows([column.take(first) for column in keys], distinct)
    return ((hashes >> np.uint64(40)) % np.uint64(plan.shards)).astype(np.int32)


def _aggregate(
    plan: WindowPlan,
    rows: pa.Table,
    keys: Sequence[pa.Array],
    coded: tuple[NDArray[np.int64], int],
    shard: NDArray[np.int32],
) -> tuple[pa.Table, NDArray[np.int32], NDArray[np.int64]]:
    key, distinct = coded
    known = rows[EVENT_TIME].is_valid().to_numpy()
    untimed = np.zeros(0, dtype=np.int64)
    if not known.all():
        untimed = np.bincount(shard[~known])
        timed = pa.array(known)
        rows, keys, key, shard = rows.filter(timed), [column.filter(timed) for column in keys], key[known], shard[known]
    time = rows[EVENT_TIME].to_numpy()
    start = plan.window.slices(time)
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
    return pa.table(columns), shard[first], untimed


def _split(table: pa.Table, shard: NDArray[np.int32], untimed: NDArray[np.int64]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each shard, in order; also of one that has only rows that were left out."""
    order = np.argsort(shard, kind="stable")
    table = table.take(pa.array(order))
    shards = np.union1d(shard, np.flatnonzero(untimed))
    starts = np.searchsorted(shard[order], shards)
    ends = np.searchsorted(shard[order], shards, side="right")
    for number, start, end in zip(shards.tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield number, table.slice(start, end - start)
