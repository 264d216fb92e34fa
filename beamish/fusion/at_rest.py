"""The state of each of some fused stages, as that of a stage in an operator of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from beamish.contract.stored import REPORTS, RUNNER, DictStore
from beamish.fusion.operator import Link, name_of, stages_as_stored
from beamish.tables.entries import FUSED


def stages_of(stores: Mapping[int, DictStore]) -> dict[str, Mapping[int, DictStore]]:
    """The shards of each stage of an operator, by the name of its entries; a single stage has the name ``""``.

    Args:
        stores: entries of the operator's shards, metadata included.
    """
    names = list(map(name_of, places_in(stores)))
    if not names:
        return {"": stores}
    return {name: {shard: _of_stage(store, name) for shard, store in stores.items()} for name in names}


def _of_stage(store: DictStore, name: str) -> DictStore:
    prefix = f"{name}/"
    own = DictStore({entry.removeprefix(prefix): value for entry, value in store.items() if entry.startswith(prefix)})
    if (reports := store.get(REPORTS)) is not None:
        own[REPORTS] = reports
    note = store.get(RUNNER)
    if note is not None:
        said = json.loads(note)
        own[RUNNER] = json.dumps({**said, "rows": (said.get("links") or {}).get(name, said["rows"])}).encode()
    return own


def places_in(stores: Mapping[int, DictStore]) -> dict[int, tuple[int, ...] | None]:
    """Per stage of a fused operator, by its number, the positions of the keys that decide the shard, None: all; empty: a single stage."""
    stored = next((one for store in stores.values() if (one := store.get(FUSED)) is not None), b"{}")
    return {int(number): None if by is None else tuple(by) for number, by in json.loads(stored).items()}


def fused_store(links: Sequence[Link], stores: Sequence[DictStore]) -> DictStore:
    """The store of a shard, from those of its stages; with a single stage that one."""
    if len(links) == 1:
        return stores[0]
    whole = DictStore({FUSED: json.dumps(stages_as_stored(links)).encode()})
    for link, store in zip(links, stores, strict=True):
        whole |= {f"{link.name}/{entry}": value for entry, value in store.items()}
    return whole
