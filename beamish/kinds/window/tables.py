"""The declared state of a window stage (contract/kept.py): windows, tables by key, and metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from beamish.contract.input_schemas import TAKES, note_takes
from beamish.contract.kept import INDEX, KeyedTable, Note, Segments
from beamish.contract.store import Store
from beamish.errors import StateError
from beamish.kinds.window.compatibility import REMOVED, all_refused, in_words
from beamish.kinds.window.note import lies
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.segments import LAYOUT
from beamish.tables.keyed_records import keyed_schema
from beamish.tables.notes import FORMAT, check_new, check_unnamed
from beamish.tables.older import OLDER
from beamish.tables.segment_store import SegmentStore


def tables_of(plan: WindowPlan) -> Iterator[KeyedTable]:
    """The tables of a window stage."""
    yield KeyedTable(LAYOUT, keyed_schema(plan.key_schema), lambda store, parts: _restore(plan, store, parts))
    for part in (plan.progress, *plan.parts):
        yield from part.tables(plan)


def _restore(plan: WindowPlan, store: Store, parts: Sequence[Segments]) -> None:
    into = SegmentStore(store, LAYOUT)
    for part in parts:
        for at, number in enumerate(part.index["segment"].tolist()):
            entry = {name: int(part.index[name][at]) for name in LAYOUT.columns}
            into.write(len(into.index["segment"]), part.read(number), entry, part.read_companions(number))
    into.about["by_key"] = "by_key" not in lies(plan)  # so the first step cuts all segments anew
    into.save()


def note_of(plan: WindowPlan) -> Note:
    """The metadata of a window stage, which is that of its index."""

    def read(store: Store) -> dict[str, Any] | None:
        segments = SegmentStore(store, LAYOUT)
        return None if segments.is_new else segments.about

    def write(store: Store, about: Mapping[str, Any]) -> None:
        segments = SegmentStore(store, LAYOUT)
        segments.about = {name: value for name, value in about.items() if name != OLDER}
        segments.save()
        note_takes(store, plan.takes)

    def check(store: Store) -> None:
        about = read(store)
        for refused in () if about is None else all_refused(about["spec"], plan):
            if refused.what != "shards" and refused.means != REMOVED:
                raise StateError(f"migrate: {in_words(refused)}")
        check_new(store, INDEX)
        check_unnamed(store)

    def stage(about: Mapping[str, Any]) -> dict[str, Any]:
        return {"format": FORMAT, "spec": {**plan.spec, "changeable": about["spec"]["changeable"]}}

    return Note(stage, frozenset([TAKES]), read, write, check)
