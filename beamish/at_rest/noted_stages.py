"""Stages whose shards keep a note in JSON, and records of keys beside it: rows once each, versioned tables and joins with one, changes.

How they are cut anew for another number of shards (at_rest/rescale.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from beamish.contract.operator import Operator
from beamish.contract.store import Store
from beamish.kinds.as_of.operator import AsOfOperator
from beamish.kinds.changes import shard as changes
from beamish.kinds.changes.operator import ChangesOperator
from beamish.kinds.deduplicate import shard as ids
from beamish.kinds.deduplicate.operator import DuplicatesOperator
from beamish.kinds.versions import note
from beamish.kinds.versions.operator import VersionsOperator
from beamish.tables.repartition import Kept, ShardsOf, notes_together, put_by_key_together, split_by_key


@attrs.frozen
class NotedStage:
    """What the shards of such a stage keep.

    Attributes:
        identity: of the stage that goes on.
        note: the entry of the note.
        check: checks that a store is of the stage, but for the number of shards.
        kept: the records of keys in a store, by the name before their entries.
        key: the places of the columns by which rows go to shards, among a record's cells or a slot's key.
    """

    identity: Mapping[str, Any]
    note: str
    check: Callable[[Store], Any]
    kept: Callable[[Store], dict[str, Kept]] = lambda _: {}
    key: Sequence[int] = ()

    def split(self, store: Store, parts: Sequence[Store], shards_of: ShardsOf) -> None:
        """Give each part of a shard what it keeps of its keys, and the note."""
        stored = store.get(self.note)
        if stored is None:
            return
        of_parts = [self.kept(part) for part in parts]
        for name, kept in self.kept(store).items():
            split_by_key(kept, [one[name] for one in of_parts], self.key, shards_of)
        about = json.loads(stored)
        for to, part in enumerate(parts):
            self.write_note(part, about if to == 0 else {**about, "dropped": {}})

    def put_together(self, parts: Sequence[Store], whole: Store) -> dict[str, Any]:
        """Write the store of a shard, from its part of each shard that was there; gives what it notes, nothing if none was there."""
        about = self.together(parts)
        if not about:
            return about
        of_parts = [self.kept(part) for part in parts]
        for name, kept in self.kept(whole).items():
            put_by_key_together([one[name] for one in of_parts], kept)
        self.write_note(whole, about)
        return about

    def write_note(self, store: Store, about: Mapping[str, Any]) -> None:
        """Note this about a shard."""
        store.put(self.note, json.dumps(about).encode())

    def together(self, parts: Sequence[Store]) -> dict[str, Any]:
        """What the parts of a shard note, as of one."""
        notes = [json.loads(stored) for part in parts if (stored := part.get(self.note)) is not None]
        return notes_together(notes, self.identity) if notes else {}


def noted_stage(own: Operator) -> NotedStage | None:
    """The stage of an operator, suppressed or not, if it is one of these."""
    stays = {what: value for what, value in own.identity.items() if what != "shards"}
    if isinstance(own, DuplicatesOperator):
        check: Callable[[Store], Any] = partial(ids.read_about, identity=stays, call=own.plan.options.call)
        return NotedStage(own.identity, ids.ENTRY, check, own.kept, own.plan.key_of_ids)
    if isinstance(own, VersionsOperator | AsOfOperator):
        check = partial(note.read_note, identity=stays, table=own.plan.table, inputs=len(own.takes))
        return NotedStage(own.identity, note.ENTRY, check, own.kept, range(len(own.plan.table.key_schema)))
    if isinstance(own, ChangesOperator):
        key = range(len(own.key_schema))
        return NotedStage(own.identity, changes.ENTRY, partial(changes.read_about, identity=stays), key=key)
    return None
