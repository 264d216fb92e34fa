"""Rescaling: repartition a stage's state for another number of shards, without an accumulation, or with wider types.

Each shard is split into one part per new shard, and the parts of a new shard are put together. Rows do not change, only the segments
they lie in. The operator declares its tables and metadata (contract/stored.py); nothing here depends on the kind of stage.

Law (tests/laws/test_carried_over.py): a run that is stopped, migrated and continued gives the output of an uninterrupted one,
except for the order of rows between keys and their sequence numbers, which still increase for each key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.clocks import Clocks
from beamish.contract.keys import shards_of_keys
from beamish.contract.operator import Operator
from beamish.contract.stored import ABOUT, REPORTS, RUNNER, DictStore, KeyedTable, Note
from beamish.errors import StateError
from beamish.kernels.buffers import Ints, cast_table
from beamish.kernels.codes import factorize_rows
from beamish.tables.notes import check_held
from beamish.tables.segments import SegmentStore

_OF_RUNNER = (RUNNER, ABOUT, REPORTS)
"""The runner's entries in a shard's store, which it migrates itself."""


def check_carries_over(operator: Operator, stores: Mapping[int, DictStore]) -> None:
    """Check that the state of a stage can be migrated to an operator.

    Args:
        operator: that continues with it.
        stores: the stores of the stage's shards, with at least the entries other than segments.

    Raises:
        StateError: it cannot be migrated, or not to this operator.
    """
    notes = operator.notes()
    if not notes:
        raise StateError(
            f"migrate: {type(operator).__name__} does not declare the state of its shards, so it cannot be rescaled; define tables() and notes()"
        )
    for store in stores.values():
        for note in notes:
            note.check(store)
            check_held((note.read(store) or {}).get("held"), note.holds)


class Carried(Protocol):
    """An operator whose state is repartitioned, or a stage of a fused one."""

    @property
    def shards(self) -> int: ...
    def tables(self) -> Iterable[KeyedTable]: ...
    def notes(self) -> Sequence[Note]: ...


def split(operator: Carried, store: DictStore) -> list[DictStore]:
    """Split a stored shard: one part for each shard of the operator.

    Args:
        operator: that continues with it; ``check_carries_over`` has passed.
        store: all entries of a stored shard.

    Raises:
        StateError: it has entries that cannot be migrated or read.
    """
    parts = [DictStore() for _ in range(operator.shards)]
    known = {entry for entry in store if entry.rpartition("/")[2] in _OF_RUNNER}
    for note in operator.notes():
        known |= note.entries
        if (about := note.read(store)) is not None:
            for to, part in enumerate(parts):
                note.write(part, about if to == 0 else {**about, "dropped": {}})
    for table in operator.tables():
        known |= table.layout.owns(store)
        _split(table, store, parts)
    other = sorted(set(store) - known)
    if other:
        raise StateError(
            f"migrate: the shard stores {', '.join(other[:3])}, which is not migrated: it belongs to another suppress, or to an option that the pipeline no longer has"
        )
    return parts


def _split(table: KeyedTable, store: DictStore, parts: Sequence[DictStore]) -> None:
    stored, into = SegmentStore(store, table.layout), [SegmentStore(part, table.layout) for part in parts]
    if stored.is_new:
        return
    for part in into:
        part.about = part.about or stored.about
    for at, number in enumerate(stored.index["segment"].tolist()):
        rows, companions = stored.read(number), stored.read_companions(number)
        shard = _shards(table.key, rows, len(parts))
        entry = {name: int(stored.index[name][at]) for name in table.layout.columns}
        for to in np.unique(shard).tolist():
            own = np.flatnonzero(shard == to)
            into[to].write(number, rows.take(pa.array(own)), entry, _of_owners(companions, own, rows.num_rows))
    for part in into:
        part.save()


def _shards(key: pa.Schema, rows: pa.Table, shards: int) -> Ints:
    """The shard of each stored row."""
    columns = [column.combine_chunks() for column in cast_table(rows.select(key.names), key).columns]
    by_key = factorize_rows(columns, rows.num_rows)
    return shards_of_keys(columns, by_key, shards)[by_key.of].astype(np.int64)


def _of_owners(companions: pa.Table | None, rows: Ints, count: int) -> pa.Table | None:
    """Companions of some rows of a segment of ``count`` rows, with owners as positions among these rows; None if empty."""
    if companions is None:
        return None
    place = np.full(count, -1)
    place[rows] = np.arange(len(rows))
    owner = place[companions["owner"].to_numpy()]
    mine = np.flatnonzero(owner >= 0)
    at = companions.schema.get_field_index("owner")
    return companions.take(pa.array(mine)).set_column(at, "owner", pa.array(owner[mine])) if len(mine) else None


def put_together(operator: Carried, parts: Sequence[DictStore]) -> DictStore:
    """The store of a new shard, from its part of each old one."""
    whole = DictStore()
    for note in operator.notes():
        noted = [about for part in parts if (about := note.read(part)) is not None]
        if noted:
            note.write(whole, {**_notes_together(noted), **note.stage(noted[0])})
    for table in operator.tables():
        stored = [segments for part in parts if not (segments := SegmentStore(part, table.layout)).is_new]
        if stored:
            table.restore(whole, stored)
    return whole


def _notes_together(notes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The metadata of several shards merged."""
    dropped = Counter[str]()
    for note in notes:
        dropped.update(note["dropped"])
    return {
        **notes[0],
        "clocks": attrs.asdict(Clocks.furthest([Clocks.of(note["clocks"]) for note in notes])),
        "dropped": dict(dropped),
        # The next number must be new to all of them.
        **{name: max(note[name] for note in notes) for name in ("numbered", "steps") if name in notes[0]},
    }
