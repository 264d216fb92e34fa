"""Ids that are remembered for some time, cut anew for another number of shards (engine/carrying_over.py).

For windows with such ids beside them, and for a stage that gives each row once, which keeps nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

import attrs
import pyarrow as pa

from beamish.engine.clocks import Clocks
from beamish.engine.duplicates.operator import DuplicatesOperator
from beamish.engine.duplicates.remembered import NAME, Ids, RememberedIds
from beamish.engine.duplicates.shard import read_about
from beamish.engine.state.store import Store
from beamish.engine.state.stored_tables import DUPLICATES
from beamish.kernels.arrays import Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups

ShardsOf = Callable[[Sequence[pa.Array], Groups], Ints]
"""Gives the shard of each row of keys: their columns, and by which they are equal, to int64."""


def ids_entries(names: Iterable[str]) -> set[str]:
    """Which entries of a shard's store are ids'."""
    return {name for name in names if name.startswith(f"{NAME}/")}


def split_ids(ids: RememberedIds, parts: Sequence[RememberedIds], key: Sequence[int], shards_of: ShardsOf) -> None:
    """Give each part of a shard the ids of its keys.

    Args:
        ids: of a shard that was there.
        parts: one for each shard that is to be.
        key: the places of the key's columns among those of an id.
        shards_of: gives the shard of each key.
    """
    stored = ids.stored()
    columns = [stored.cells.column(place).combine_chunks() for place in key]
    shard = shards_of(columns, factorize_rows(columns, len(stored)))
    for to, part in enumerate(parts):
        part.put(stored.take(shard == to))


def put_ids_together(parts: Sequence[RememberedIds], whole: RememberedIds) -> None:
    """Write the ids of a shard, from its part of each shard that was there."""
    whole.put(Ids.concat([part.stored() for part in parts]))


def check_rows_once(operator: DuplicatesOperator, stores: Iterable[Store]) -> None:
    """Check that rows once each can be carried over: all that a checkpoint holds fast but the number of shards is as it was.

    Raises:
        StateError: it is not, or they are of another stage.
    """
    for store in stores:
        read_about(operator.plan, store, shards=False)


def split_rows_once(operator: DuplicatesOperator, store: Store, parts: Sequence[Store], shards_of: ShardsOf) -> None:
    """Give each part of a shard its ids, and the notes."""
    about = read_about(operator.plan, store, shards=False)
    if about is None:
        return
    split_ids(_ids(operator, store), [_ids(operator, part) for part in parts], operator.plan.key_of_ids, shards_of)
    for to, part in enumerate(parts):
        part.put(DUPLICATES, json.dumps(about if to == 0 else {**about, "dropped": {}}).encode())


def put_rows_once_together(
    operator: DuplicatesOperator, parts: Sequence[Store], whole: Store, furthest: Callable[[Sequence[Clocks]], Clocks]
) -> None:
    """Write the store of a shard, from its part of each shard that was there.

    Args:
        operator: that goes on with it.
        parts: as ``split_rows_once`` made them.
        whole: the store of the new shard.
        furthest: where the clocks of some shards stand together.
    """
    abouts = [about for part in parts if (about := read_about(operator.plan, part, shards=False)) is not None]
    if not abouts:
        return
    put_ids_together([_ids(operator, part) for part in parts], _ids(operator, whole))
    about = {
        **abouts[0],
        "identity": operator.plan.identity,
        "clocks": attrs.asdict(furthest([Clocks.of(about["clocks"]) for about in abouts])),
        "dropped": added_up(about["dropped"] for about in abouts),
    }
    whole.put(DUPLICATES, json.dumps(about).encode())


def added_up(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Counts by name, of several."""
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total


def _ids(operator: DuplicatesOperator, store: Store) -> RememberedIds:
    return RememberedIds(operator.plan.id_schema, operator.plan.within_us, store, operator.policy)
