"""What a stage that gives each row once keeps, cut anew for another number of shards (engine/carrying_over.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import attrs

from beamish.engine.clocks import Clocks
from beamish.engine.duplicates.operator import DuplicatesOperator
from beamish.engine.duplicates.remembered import RememberedIds
from beamish.engine.duplicates.shard import read_about
from beamish.engine.state.cut_anew import ShardsOf, added_up, put_by_key_together, split_by_key
from beamish.engine.state.store import Store
from beamish.engine.state.stored_tables import DUPLICATES


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
    split_by_key(_ids(operator, store), [_ids(operator, part) for part in parts], operator.plan.key_of_ids, shards_of)
    for to, part in enumerate(parts):
        part.put(DUPLICATES, json.dumps(about if to == 0 else {**about, "dropped": {}}).encode())


def put_rows_once_together(operator: DuplicatesOperator, parts: Sequence[Store], whole: Store) -> None:
    """Write the store of a shard, from its part of each shard that was there.

    Args:
        operator: that goes on with it.
        parts: as ``split_rows_once`` made them.
        whole: the store of the new shard.
    """
    abouts = [about for part in parts if (about := read_about(operator.plan, part, shards=False)) is not None]
    if not abouts:
        return
    put_by_key_together([_ids(operator, part) for part in parts], _ids(operator, whole))
    about = {
        **abouts[0],
        "identity": operator.plan.identity,
        "clocks": attrs.asdict(Clocks.furthest([Clocks.of(about["clocks"]) for about in abouts])),
        "dropped": added_up(about["dropped"] for about in abouts),
    }
    whole.put(DUPLICATES, json.dumps(about).encode())


def _ids(operator: DuplicatesOperator, store: Store) -> RememberedIds:
    return RememberedIds(operator.plan.id_schema, operator.plan.within_us, store, operator.policy)
