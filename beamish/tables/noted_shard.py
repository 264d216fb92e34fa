"""Shards whose clocks and dropped rows are one JSON entry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import attrs

from beamish.contract.clocks import Clocks
from beamish.contract.kept import Note
from beamish.contract.operator import Operator, Shard
from beamish.contract.store import Store
from beamish.tables.notes import NOTE_FORMAT, entry_note, read_note


class NotedShard(Shard):
    """A shard that notes its clocks, its dropped rows and what a suppress holds; for the arguments see ``read_note``.

    Raises:
        StateError: the state was written by another stage, number of shards or format.
    """

    ENTRY: ClassVar[str]
    HOLDS: ClassVar[str]

    dropped: dict[str, int]

    def __init__(self, operator: Operator, store: Store, by: str) -> None:
        self.operator, self._store = operator, store
        self.clocks, self.dropped = Clocks.new(len(operator.takes)), {}
        about = read_note(store, self.ENTRY, operator.identity, self.HOLDS, by)
        if about is not None:
            self.clocks, self.dropped, self.held = Clocks.of(about["clocks"]), about["dropped"], about.get("held")

    @classmethod
    def note(cls, identity: Mapping[str, Any], by: str) -> Note:
        """Declare the note of such shards."""
        return entry_note(cls.ENTRY, identity, partial(read_note, entry=cls.ENTRY, holds=cls.HOLDS, by=by))

    def save(self, held: Mapping[str, Any] | None = None) -> None:
        about = {"format": NOTE_FORMAT, "identity": self.operator.identity}
        about |= {"clocks": attrs.asdict(self.clocks), "dropped": self.dropped}
        self._store.put(self.ENTRY, json.dumps(about if held is None else about | {"held": held}).encode())
