"""The declared state of a window stage (contract/kept.py): windows, tables by key, and metadata, under each windowing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.input_schemas import TAKES, note_takes
from beamish.contract.kept import INDEX, KeyedTable, Note, Segments
from beamish.contract.store import DictStore, Store
from beamish.errors import StateError
from beamish.kinds.deduplicate.remembered import ids_table
from beamish.kinds.window.compatibility import all_refused
from beamish.kinds.window.fallen import NAME as FALLEN
from beamish.kinds.window.fallen import Fallen, FallenWindows
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.reaches import NAME as REACHES
from beamish.kinds.window.reaches import Reach, Reaches
from beamish.kinds.window.segments import LAYOUT
from beamish.kinds.window.several import note_names
from beamish.kinds.window.state import known_by, open_ids
from beamish.tables.keyed_records import cells_of_keys, keyed_layout, keyed_schema
from beamish.tables.notes import check_new, check_unnamed
from beamish.tables.prefixed import under
from beamish.tables.records import Records
from beamish.tables.segment_store import SegmentStore
from beamish.tables.segmented_records import SegmentedRecords, record_table
from beamish.tables.stored_tables import WINDOWINGS


def tables_of(plan: WindowPlan) -> list[KeyedTable]:
    """The tables of a window stage."""
    return [_under(name, table) for name, of in plan.by_windowing.items() for table in _tables(of)]


def _under(name: str | None, table: KeyedTable) -> KeyedTable:
    if name is None:
        return table
    own = table.layout.name
    layout = attrs.evolve(table.layout, name=f"{name}/{own}" if own else name)
    return attrs.evolve(table, layout=layout, restore=lambda store, parts: table.restore(under(name, store), parts))


def _tables(plan: WindowPlan) -> Iterator[KeyedTable]:
    yield KeyedTable(LAYOUT, keyed_schema(plan.key_schema), lambda store, parts: _restore(plan, store, parts))
    if plan.ids_within_us is not None:
        yield ids_table(known_by(plan), range(len(plan.key_schema)), lambda store: open_ids(plan, store))
    if plan.counts_rows:
        yield _by_key(
            plan.key_schema if plan.counts_by_key else pa.schema([]), REACHES, Reach, lambda store: Reaches(plan, store)
        )
    # It stays when retain() is removed.
    yield _by_key(plan.key_schema, FALLEN, Fallen, lambda store: FallenWindows(plan, store))


def _by_key(
    keys: pa.Schema, name: str, kind: type[Records], opened: Callable[[Store], SegmentedRecords[Any]]
) -> KeyedTable:
    return record_table(keyed_layout(name), kind.none(cells_of_keys(keys)), keyed_schema(keys).names, opened)


def _restore(plan: WindowPlan, store: Store, parts: Sequence[Segments]) -> None:
    into = SegmentStore(store, LAYOUT)
    for part in parts:
        for at, number in enumerate(part.index["segment"].tolist()):
            entry = {name: int(part.index[name][at]) for name in LAYOUT.columns}
            into.write(len(into.index["segment"]), part.read(number), entry, part.read_companions(number))
    into.about["by_key"] = not plan.retains  # so the first step cuts all segments anew
    into.save()


def notes_of(plan: WindowPlan) -> list[Note]:
    """The metadata of each windowing, which is that of its index."""
    return [_note(plan, name, of) for name, of in plan.by_windowing.items()]


def _note(plan: WindowPlan, name: str | None, of: WindowPlan) -> Note:
    def read(store: Store) -> dict[str, Any] | None:
        segments = SegmentStore(under(name, store), LAYOUT)
        return None if segments.is_new else segments.about

    def write(store: Store, about: Mapping[str, Any]) -> None:
        segments = SegmentStore(under(name, store), LAYOUT)
        segments.about = dict(about)
        segments.save()
        note_takes(under(name, store), of.takes)
        if name is not None:
            store.put(WINDOWINGS, json.dumps(list(plan.windowings)).encode())

    def check(store: DictStore) -> None:
        about = read(store)
        for refused in () if about is None else all_refused(about["identity"], of):
            if refused.what != "shards " and not refused.is_taken_away:
                raise StateError(f"migrate: {refused}")
        check_new(store, INDEX)
        if name is None:
            check_unnamed(store)
        else:
            note_names(plan, DictStore(store))

    prefix = "" if name is None else f"{name}/"
    return Note(of.identity, frozenset([WINDOWINGS, prefix + TAKES]), read, write, check)
