"""Rows on their way to their shards: rows of a source or panes of another stage, as one payload of Arrow bytes per shard.

A payload holds rows, or, where the meaning allows it (``WindowPlan.preaggregates``), *slices*: the accumulators of
the rows of one key and one slice of time. Windows consist of whole slices (``WindowOption.slices``).

columns of rows:    the plan's columns, and
    EVENT_TIME      int64; null where the row has no event time
columns of slices:  the key columns, the accumulators' state, and
    SLICE           int64: the start of the slice
    ROWS            int64: number of its rows
    FIRST, LAST     int64: their earliest and latest event time (under a timestamp combiner, or where the query is observed)
metadata (JSON):
    input           the number of the rows' input
    windowings      the windowings that take them (windowings.py); absent for a single, unnamed one
    untimed         number of rows without event time that were left out of slices
    out_of_range    number of rows that were left out of slices since their event time is out of range
    error           the error of its rows, which are dropped for it (row_errors.py)
    latest_us       the latest event time of the rows, microseconds; only with several inputs, and if a row has one

Payloads packed in pieces: slices of pieces are merged before they are sent. A piece is packed while the next is read, and takes little
memory; but each piece has its own slices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.contract.clocks import in_range
from beamish.contract.inputs import filtered, signs_of, widen
from beamish.contract.keys import shards_of_keys
from beamish.contract.relation import Relation
from beamish.errors import NumericOverflowError, shown
from beamish.instants import END_OF_TIME_US, NO_TIME_US
from beamish.kernels.buffers import from_bytes, to_bytes
from beamish.kernels.codes import factorize_rows, factorize_tuples, factorize_values, normalise
from beamish.kernels.column_names import (
    EVENT_TIME,
    FIRST,
    LAST,
    ROWS,
    SIGN,
    SLICE,
    WINDOW_END,
    WINDOW_START,
    has_no_event_time,
)
from beamish.kernels.expressions import NO_OTHER
from beamish.kernels.groups import Groups
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.watermarks import NO_WATERMARK_US
from beamish.windows.option import FARTHEST


def rows_taken(plan: WindowPlan, number: int, table: pa.Table) -> pa.Table:
    """Convert an input of a window stage to rows.

    Args:
        plan: the stage's plan.
        number: the number of the input.
        table: rows of a source with ``EVENT_TIME``, or panes without dropped rows.

    Returns:
        the plan's columns and ``EVENT_TIME``.
    """
    relation = plan.takes[number]
    known = set(relation.columns.names)
    columns: dict[str, Any] = {name: table[name] for name in table.schema.names if name in known}
    columns |= _of_panes(plan, table) if relation.is_panes else {EVENT_TIME: _event_times(plan, relation, table)}
    if plan.signed:
        columns[SIGN] = signs_of(relation, table)
    if plan.has_several_inputs:
        schema = plan.schema.append(pa.field(EVENT_TIME, pa.int64()))
        return widen(plan.takes, number, columns, table.num_rows, schema)
    return pa.table({name: columns[name] for name in (*plan.schema.names, EVENT_TIME)})


def only_wanted(plan: WindowPlan, number: int, rows: pa.Table) -> pa.Table:
    """The rows of an input that satisfy ``where``."""
    drop = "add .on_error('drop') and restart from the checkpoint: the row is then emitted as a dropped row"
    way_out = NO_OTHER if plan.signed else drop  # over retracting input it needs the rows, which are not stored
    return filtered(plan.takes[number].where or plan.options.where, rows, way_out)


def _event_times(plan: WindowPlan, relation: Relation, rows: pa.Table) -> Any:
    """The event times of a source's rows; a constant one for rows that need none, within the global window."""
    if has_no_event_time(relation.event_time) and not plan.options.counts_rows:
        return pa.array(np.zeros(rows.num_rows, np.int64))
    return rows[EVENT_TIME]


def _of_panes(plan: WindowPlan, panes: pa.Table) -> dict[str, Any]:
    """The event time of panes, and their windows if the stage inherits them."""
    time = panes["timestamp"].combine_chunks().cast(pa.int64())
    if WINDOW_START not in plan.schema.names:
        return {EVENT_TIME: pc.fill_null(time, NO_TIME_US)}
    window = panes["window"].combine_chunks()
    end = _us(window.field("end"), END_OF_TIME_US)
    return {
        WINDOW_START: _us(window.field("start"), 0),
        WINDOW_END: end,
        EVENT_TIME: pc.coalesce(time, pc.subtract(end, 1)),
    }


def _us(times: pa.Array, unknown: int) -> pa.Array:
    return pc.fill_null(times.cast(pa.int64()), unknown)


_ABOUT = b"beamish"


def pack_rows(plan: WindowPlan, number: int, rows: pa.Table, **about: Any) -> Iterator[tuple[int, bytes]]:
    """Pack rows, one payload per shard.

    Args:
        plan: the stage's plan.
        number: the number of their input.
        rows: the plan's columns and ``EVENT_TIME``.
        about: further metadata of the payloads.

    Returns:
        the number of each shard that has rows, and its payload.
    """
    rows = rows.select([*plan.schema.names, EVENT_TIME]).combine_chunks()
    if "error" not in about:
        check_numbers(plan, rows)
    keys = [normalise(column.combine_chunks()) for column in rows.select(plan.key_schema.names).columns]
    by_key = factorize_rows(keys, rows.num_rows)
    shard = shards_of_keys(keys, by_key, plan.shards, plan.takes[number].shards_by)[by_key.of]
    left_out: dict[str, NDArray[np.int64]] = {}
    latest = _latest(rows[EVENT_TIME], shard, plan.shards) if plan.has_several_inputs else None
    if plan.preaggregates:
        rows, shard, left_out = _aggregate(plan, rows, keys, by_key, shard)
    for to, table in _split(rows, shard, left_out.values()):
        counts = {name: int(count[to]) for name, count in left_out.items()}
        if latest is not None and latest[to] != NO_WATERMARK_US:
            counts["latest_us"] = int(latest[to])
        yield to, to_payload(table, {"input": number, **counts, **about})


def _latest(event_time: pa.ChunkedArray, shard: NDArray[np.int32], shards: int) -> NDArray[np.int64]:
    """The latest event time of each shard's rows: int64, microseconds; NO_WATERMARK_US: no event time in range."""
    time = pc.fill_null(event_time, NO_WATERMARK_US).to_numpy()
    return Groups(shard.astype(np.int64), shards).greatest(np.where(in_range(time), time, NO_WATERMARK_US))


def check_numbers(plan: WindowPlan, rows: pa.Table) -> None:
    """Check the numbers in rows, if windows use them (NumericOverflowError: a number is too far from 0)."""
    numbering = plan.window.numbering
    if numbering is None or numbering.numbered_by is None:
        return
    brought = rows[numbering.numbered_by]
    far = brought.filter(pc.or_(pc.greater(brought, FARTHEST), pc.less(brought, -FARTHEST)))
    if len(far):
        raised = (
            f"window({plan.window!r}): a row has the number {shown(far[0].as_py())}; numbers must be within 2^62 of 0"
        )
        error = NumericOverflowError(
            f"{raised}, so that the bounds of their windows fit; use smaller ones, such as the offset minus a base, or add "
            ".on_error('drop')"
        )
        error.raised = raised
        raise error


def to_payload(table: pa.Table, about: Mapping[str, Any]) -> bytes:
    """Rows or slices with metadata, as a payload."""
    return to_bytes(table.replace_schema_metadata({_ABOUT: json.dumps(about)}))


def about(payload: bytes) -> dict[str, Any]:
    """The metadata of a payload."""
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return json.loads(reader.schema.metadata[_ABOUT])  # type: ignore[no-any-return]


def unpack(payloads: Sequence[bytes]) -> tuple[pa.Table, int, int]:
    """The payloads of a shard as one table, and the numbers of rows left out of it.

    Returns:
        table: rows or slices.
        untimed: number of rows without event time that were left out.
        out_of_range: number of rows that were left out since their event time is out of range.
    """
    tables = [from_bytes(payload) for payload in payloads]
    metadata = [json.loads(table.schema.metadata[_ABOUT]) for table in tables]
    untimed, out_of_range = (sum(each.get(name, 0) for each in metadata) for name in ("untimed", "out_of_range"))
    table = pa.concat_tables([table.replace_schema_metadata() for table in tables]).combine_chunks()
    return table, untimed, out_of_range


def _aggregate(
    plan: WindowPlan,
    rows: pa.Table,
    keys: Sequence[pa.Array],
    by_key: Groups,
    shard: NDArray[np.int32],
) -> tuple[pa.Table, NDArray[np.int32], dict[str, NDArray[np.int64]]]:
    """Pre-aggregate rows into slices.

    Args:
        plan: the stage's plan.
        rows: n rows.
        keys: their key columns, normalised.
        by_key: of the rows, by equal keys.
        shard: int32[n], the shard of each.

    Returns:
        the slices, the shard of each (int32), and the numbers of rows left out, by their names in the metadata (int64, one per shard).
    """
    known = rows[EVENT_TIME].is_valid().to_numpy()
    inside = known & in_range(pc.fill_null(rows[EVENT_TIME], 0).to_numpy())
    left_out = {}
    if not inside.all():
        by_shard = Groups(shard.astype(np.int64), plan.shards)
        left_out = {"untimed": by_shard[~known].sizes(), "out_of_range": by_shard[known & ~inside].sizes()}
        timed = pa.array(inside)
        rows, keys = rows.filter(timed), [column.filter(timed) for column in keys]
        by_key, shard = by_key[inside], shard[inside]
    time = rows[EVENT_TIME].to_numpy()
    start = plan.window.slices(time)
    assert start is not None  # noqa: S101 - a window option that preaggregates says its slices
    groups = factorize_tuples([by_key, factorize_values(start)], len(time))
    states = [bound.accumulation.reduce(bound.inputs(rows), time, groups) for bound in plan.accumulations]
    table = slices(plan, groups, keys, start, states, rows=groups.sizes(), first=time, last=time)
    return table, shard[groups.first()], left_out


def slices(
    plan: WindowPlan,
    groups: Groups,
    keys: Sequence[pa.Array],
    start: NDArray[np.int64],
    states: Sequence[Sequence[pa.Array]],
    *,
    rows: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> pa.Table:
    """Build slices from groups of rows, or of smaller slices.

    Args:
        plan: the stage's plan.
        groups: of n entries, by key and slice.
        keys: the key columns of the entries.
        start: int64[n], the start of each entry's slice.
        states: the state of each accumulation per group.
        rows: number of rows per group.
        first, last: int64[n], the earliest and latest event time of each entry.
    """
    one = groups.first()
    columns = {name: column.take(pa.array(one)) for name, column in zip(plan.key_schema.names, keys, strict=True)}
    columns[SLICE] = pa.array(start[one])
    columns[ROWS] = pa.array(rows)
    if plan.carries_times:
        columns |= {FIRST: pa.array(groups.least(first)), LAST: pa.array(groups.greatest(last))}
    for bound, state in zip(plan.accumulations, states, strict=True):
        columns |= {f"{bound.name}.{i}": column for i, column in enumerate(state)}
    return pa.table(columns)


def _split(
    table: pa.Table, shard: NDArray[np.int32], left_out: Collection[NDArray[np.int64]]
) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each shard, in order; also for shards with only left-out rows."""
    order = np.argsort(shard, kind="stable")
    table = table.take(pa.array(order))
    shards = np.unique(np.concatenate([shard, *map(np.flatnonzero, left_out)]))
    starts = np.searchsorted(shard[order], shards)
    ends = np.searchsorted(shard[order], shards, side="right")
    for number, start, end in zip(shards.tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield number, table.slice(start, end - start)


_MOST_BYTES = 64 * 2**20
"""Payloads wait for others up to this size."""
_WORTH = 1.25
"""Payloads are merged if this divides their number of slices."""


def joined(packed: Iterable[tuple[int, bytes]], plan_of: Callable[[bytes], WindowPlan]) -> Iterator[tuple[int, bytes]]:
    """Pairs of a shard's number and a payload, of one input; payloads of slices are merged, rows are passed through.

    ``plan_of`` gives the plan that a payload was packed by.
    """
    held: dict[tuple[int, WindowPlan], list[bytes]] = {}
    size = 0
    for shard, payload in packed:
        plan = plan_of(payload)
        if not plan.preaggregates:
            yield shard, payload
            continue
        held.setdefault((shard, plan), []).append(payload)
        size += len(payload)
        if size > _MOST_BYTES:
            yield from _each_joined(held)
            held, size = {}, 0
    yield from _each_joined(held)


def _each_joined(held: Mapping[tuple[int, WindowPlan], Sequence[bytes]]) -> Iterator[tuple[int, bytes]]:
    for (shard, plan), payloads in held.items():
        for payload in _join(plan, payloads):
            yield shard, payload


def _join(plan: WindowPlan, payloads: Sequence[bytes]) -> Sequence[bytes]:
    """Merge payloads of slices, so that each key and slice occurs once; unchanged if little would be saved."""
    if len(payloads) == 1:
        return payloads
    table, untimed, out_of_range = unpack(payloads)
    rows, start = table[ROWS].to_numpy(), table[SLICE].to_numpy()
    keys = [table[name].combine_chunks() for name in plan.key_schema.names]
    groups = factorize_tuples([factorize_rows(keys, len(rows)), factorize_values(start)], len(rows))
    if len(rows) < _WORTH * groups.count:
        return payloads
    first, last = (table[name].to_numpy() if plan.carries_times else start for name in (FIRST, LAST))
    states = [bound.accumulation.combine(groups, bound.state_in(table)) for bound in plan.accumulations]
    said = [about(payload) for payload in payloads]
    latest = [each["latest_us"] for each in said if "latest_us" in each]
    counts = {"untimed": untimed, "out_of_range": out_of_range} | ({"latest_us": max(latest)} if latest else {})
    one = slices(plan, groups, keys, start, states, rows=groups.sum(rows), first=first, last=last)
    return [to_payload(one, said[0] | counts)]
