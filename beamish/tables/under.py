"""Tables and metadata of a part of a shard, under its name among the entries of all parts: of a windowing, or of a fused stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.stored import KeyedTable, Note, Segments, Store
from beamish.tables.entries import StoreUnder


def table_under(name: str, table: KeyedTable) -> KeyedTable:
    """The table of a part, among the entries of all."""
    layout = attrs.evolve(table.layout, name=f"{name}/{table.layout.name}".removesuffix("/"))

    def restore(store: Store, parts: Sequence[Segments]) -> None:
        table.restore(StoreUnder(name, store), parts)

    return attrs.evolve(table, layout=layout, restore=restore)


def note_under(name: str, note: Note, entry: str, write_names: Callable[[Store], object]) -> Note:
    """The metadata of a part, among the entries of all.

    Args:
        name: of the part.
        note: of the part.
        entry: the entry that says which parts there are.
        write_names: writes it.
    """

    def write(store: Store, metadata: Mapping[str, Any]) -> None:
        note.write(StoreUnder(name, store), metadata)
        write_names(store)

    return attrs.evolve(
        note,
        entries=frozenset([entry, *(f"{name}/{own}" for own in note.entries)]),
        read=lambda store: note.read(StoreUnder(name, store)),
        write=write,
        check=lambda store: note.check(StoreUnder(name, store)),
    )
