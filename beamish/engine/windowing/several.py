"""A shard under several windowings: the shard of each windowing, one after the other, in one store.

Each windowing has a state of its own under its name, and clocks of its own, which all see the same steps. Rows come
in one delivery: summed up once for each windowing that allows it, and as rows once for all others. A payload ends
with the numbers of the windowings that it is for, and how many these are (a byte each).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from beamish.engine.state import Store
from beamish.engine.windowing.packing import pack
from beamish.engine.windowing.shard import Shard
from beamish.errors import StateError
from beamish.plan import Plan
from beamish.windows.windowings import WINDOWING

_NAMES = "windowings"


def open_shard(plan: Plan, store: Store) -> Shard | WindowingShards:
    """The shard of a pipeline, under one windowing or several."""
    return WindowingShards(plan, store) if plan.windowings else Shard(plan, store)


def pack_each(plan: Plan, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
    """Pack rows (``packing.pack``); under several windowings a payload for each shard and each delivery."""
    if not plan.windowings:
        yield from pack(plan, rows)
    for numbers, of in _deliveries(plan.windowings):
        end = bytes([*numbers, len(numbers)])
        for shard, payload in pack(of, rows):
            yield shard, payload + end


def _deliveries(windowings: Mapping[str, Plan]) -> Iterator[tuple[list[int], Plan]]:
    """Which windowings have a payload in common, and the plan by which it is packed."""
    as_rows: dict[tuple[str, ...], list[int]] = {}
    plans = list(windowings.values())
    for number, plan in enumerate(plans):
        if plan.preaggregates:
            yield [number], plan
        else:
            as_rows.setdefault(plan.columns, []).append(number)
    for numbers in as_rows.values():
        yield numbers, plans[numbers[0]]


class WindowingShards:
    """Some of the keys of a pipeline with several windowings; to be used as a ``Shard`` is.

    Raises:
        StateError: the state has a windowing that the pipeline has no more, or was written by another pipeline.
    """

    def __init__(self, plan: Plan, store: Store) -> None:
        self.plan = plan
        _note_names(plan, store)
        self._shards = {name: Shard(of, _Under(name, store)) for name, of in plan.windowings.items()}

    def step(self, watermark_us: int | None, clock_us: int | None, payloads: Sequence[bytes]) -> pa.Table:
        """As ``Shard.step``, for each windowing."""
        place = len(self.plan.key_schema)
        tables = []
        for number, (name, shard) in enumerate(self._shards.items()):
            its = [payload for payload in payloads if number in payload[-1 - payload[-1] : -1]]
            panes = shard.step(watermark_us, clock_us, its)
            tables.append(panes.add_column(place, WINDOWING, pa.array([name] * panes.num_rows, pa.string())))
        return pa.concat_tables(tables)

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which a window of the shard is due; None: it has none."""
        return min((due for shard in self._shards.values() if (due := shard.next_due_us) is not None), default=None)


def _note_names(plan: Plan, store: Store) -> None:
    """Keep the windowings' names; one that the state has must stay, since nothing would close its windows."""
    stored = json.loads(store.get(_NAMES) or "[]")
    gone = [name for name in stored if name not in plan.windowings]
    if gone:
        raise StateError(
            f"the checkpoint has windows of {', '.join(map(repr, gone))}, the pipeline has only "
            f"{', '.join(map(repr, plan.windowings))}: their panes would be lost; keep the windowing (new ones may be "
            "added), or start from a new checkpoint"
        )
    if stored != list(plan.windowings):
        store.put(_NAMES, json.dumps(list(plan.windowings)).encode())


class _Under:
    """What a store holds under a name."""

    def __init__(self, name: str, store: Store) -> None:
        self._name, self._store = name, store

    def get(self, name: str) -> bytes | None:
        return self._store.get(f"{self._name}/{name}")

    def put(self, name: str, value: bytes) -> None:
        self._store.put(f"{self._name}/{name}", value)

    def remove(self, name: str) -> None:
        self._store.remove(f"{self._name}/{name}")
