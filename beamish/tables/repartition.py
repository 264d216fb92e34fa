"""Records of keys, cut anew for another number of shards (at_rest/rescale.py)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import pyarrow as pa

from beamish.contract.clocks import Clocks
from beamish.kernels.arrays import Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups
from beamish.tables.records import Records

ShardsOf = Callable[[Sequence[pa.Array], Groups], Ints]
"""Gives the shard of each row of keys: their columns, and by which they are equal, to int64."""


class Kept(Protocol):
    """What a shard keeps as records of keys."""

    def stored(self) -> Records:
        """All of them."""

    def put(self, records: Any, /) -> None:
        """Take those that another shard had, of keys that are not here, and write them."""


def entries_under(names: Container[str], store: Iterable[str]) -> set[str]:
    """Which entries of a shard's store lie under some names: of ``ids/3`` it is ``ids``."""
    return {entry for entry in store if entry.partition("/")[0] in names}


def split_by_key(kept: Kept, parts: Sequence[Kept], key: Iterable[int], shards_of: ShardsOf) -> None:
    """Give each part of a shard the records of its keys.

    Args:
        kept: of a shard that was there.
        parts: one for each shard that is to be.
        key: the places of the key's columns among the cells.
        shards_of: gives the shard of each key.
    """
    records = kept.stored()
    if len(parts) == 1:  # of rows that are counted over the stream there is one record, without a key
        parts[0].put(records)
        return
    columns = [records.cells.column(place).combine_chunks() for place in key]
    shard = shards_of(columns, factorize_rows(columns, len(records)))
    for to, part in enumerate(parts):
        part.put(records.take(shard == to))


def put_by_key_together(parts: Sequence[Kept], whole: Kept) -> None:
    """Write the records of a shard, from its part of each shard that was there."""
    records = [part.stored() for part in parts]
    whole.put(type(records[0]).concat(records))


def notes_together(notes: Sequence[Mapping[str, Any]], identity: Any) -> dict[str, Any]:
    """What the shards that were there note about themselves, as of one; ``identity``: of the stage that goes on."""
    return {
        **notes[0],
        "identity": identity,
        "clocks": attrs.asdict(Clocks.furthest([Clocks.of(note["clocks"]) for note in notes])),
        "dropped": _added_up(note["dropped"] for note in notes),
        # A number that comes next is that of no row, and of no step, of any of them.
        **{name: max(note[name] for note in notes) for name in ("numbered", "steps") if name in notes[0]},
    }


def _added_up(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts by name, of several."""
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total
