"""Shards whose clocks and dropped rows are one JSON entry (``json_note``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.contract.clocks import Clocks
from beamish.contract.operator import Operator, Shard
from beamish.contract.store import Store
from beamish.tables.notes import NOTE_FORMAT, EntryNote


class NotedShard(Shard):
    """A shard that notes its clocks, its dropped rows and what a suppress holds.

    Args:
        operator: of the stage.
        store: the shard's.
        note: as ``json_note`` declared it.

    Raises:
        StateError: the state was written by another stage, number of shards or format.
    """

    dropped: dict[str, int]

    def __init__(self, operator: Operator, store: Store, note: EntryNote) -> None:
        self.operator, self._store, self._note = operator, store, note
        self.clocks, self.dropped = Clocks.new(len(operator.takes)), {}
        about = note.open(store)
        if about is not None:
            self.clocks, self.dropped, self.held = Clocks.of(about["clocks"]), about["dropped"], about.get("held")

    def save(self, held: Mapping[str, Any] | None = None) -> None:
        about = {"format": NOTE_FORMAT, "identity": self._note.identity}
        about |= {"clocks": attrs.asdict(self.clocks), "dropped": self.dropped}
        self._note.write(self._store, about if held is None else about | {"held": held})
