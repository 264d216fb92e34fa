"""Payloads packed in pieces: slices of pieces are merged before they are sent.

A piece is packed while the next is read, and takes little memory; but each piece has its own slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from beamish.kernels.codes import factorize_rows, factorize_tuples, factorize_values
from beamish.kernels.reserved import FIRST, LAST, ROWS, SLICE
from beamish.kinds.window.packing import about, slices, to_payload, unpack
from beamish.kinds.window.plan import WindowPlan

_MOST_BYTES = 64 * 2**20
"""Payloads wait for others up to this size."""
_WORTH = 1.25
"""Payloads are merged if this divides their number of slices."""


def joined(packed: Iterable[tuple[int, bytes]], plan_of: Callable[[bytes], WindowPlan]) -> Iterator[tuple[int, bytes]]:
    """Pairs of a shard's number and a payload, of one input, with those of slices put together; rows go on as they come.

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
