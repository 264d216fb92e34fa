"""The state of a stage of windows, cut anew: for another number of shards, without an accumulation, with wider types.

Each shard is split into a part for each new shard, and the parts of a new shard are put together. Windows keep all that they have; only
where they lie changes. Segments are cut anew by the first step after it, which reads all of them.

Windows are cut here, with all that lies by keys beside them; other stages in noted_stages.py.

Law (tests/laws/test_carried_over.py): a run that is stopped, carried over and continued gives what one that never stopped gives, but for
the order of rows between keys and the numbers of the rows that came out, which still rise for each key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.at_rest.noted_stages import NotedStage, noted_stage
from beamish.at_rest.stage_plans import window_plan
from beamish.contract.clocks import Clocks
from beamish.contract.input_schemas import TAKES, note_takes
from beamish.contract.operator import Operator
from beamish.contract.sharding import shards_of_keys
from beamish.contract.store import DictStore, Store
from beamish.errors import StateError
from beamish.kernels.arrays import Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups
from beamish.kinds.deduplicate import remembered
from beamish.kinds.suppress.carrying_over import held_entries, put_held_together, split_held
from beamish.kinds.suppress.operator import SuppressOperator
from beamish.kinds.window import fallen, reaches
from beamish.kinds.window.compatibility import Difference, all_refused
from beamish.kinds.window.index import LAYOUT, read_index_entry
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.several import note_names
from beamish.kinds.window.state import open_ids
from beamish.tables.notes import check_held, check_new, check_unnamed
from beamish.tables.pool import columns_under
from beamish.tables.prefixed import under
from beamish.tables.repartition import Kept, entries_under, notes_together, put_by_key_together, split_by_key
from beamish.tables.segment_store import SegmentStore
from beamish.tables.stored_tables import INDEX, WINDOWINGS

_SEGMENTS = re.compile(r"[si]-?\d+")
_OF_RUNNER = ("spark", "about", "reports")
"""What the runner keeps in a shard's store; it carries that over itself."""


def check_carries_over(operator: Operator, stores: Mapping[int, DictStore]) -> None:
    """Check that the state of a stage can be carried over to an operator.

    Args:
        operator: that goes on with it.
        stores: the stores of the stage's shards, with at least the entries that are no segments.

    Raises:
        StateError: it cannot, or not to this one.
    """
    noted, suppress = _noted(operator), _suppress(operator)
    suppressed = None if suppress is None else suppress.suppress.name
    if noted is not None:
        for store in stores.values():
            noted.check(store)
            check_held(noted.together([store]).get("held"), suppressed)
        return
    plan = window_plan(operator)
    for store in stores.values():
        for name, of in plan.by_windowing.items():
            stored = read_index_entry(under(name, store))
            if stored is not None:
                _check_identity(stored[1]["identity"], of)
                check_held(stored[1].get("held"), suppressed)
        check_new(store, INDEX)
        if plan.windowings:
            note_names(plan, DictStore(store))
        else:
            check_unnamed(store)


def _noted(operator: Operator) -> NotedStage | None:
    suppress = _suppress(operator)
    return noted_stage(operator if suppress is None else suppress.inner)


def _suppress(operator: Operator) -> SuppressOperator | None:
    return operator if isinstance(operator, SuppressOperator) else None


def _check_identity(stored: Mapping[str, Any], plan: WindowPlan) -> None:
    for refused in all_refused(stored, plan):
        if not _may_go(refused):
            raise StateError(f"migrate: {refused}")


def _may_go(refused: Difference) -> bool:
    return refused.what == "shards " or refused.is_taken_away


def split(operator: Operator, store: DictStore) -> list[DictStore]:
    """The parts of a shard: one for each shard of the operator.

    Args:
        operator: that goes on with it; ``check_carries_over`` has passed.
        store: all entries of a shard that was there.

    Raises:
        StateError: it has entries that are not carried over, or that cannot be read.
    """
    parts, noted, suppress = [DictStore() for _ in range(operator.shards)], _noted(operator), _suppress(operator)
    shards_of = partial(_shards_of, operator.shards)
    if noted is None:
        plan = window_plan(operator)
        known, keys = _split_windows(plan, store, parts), plan.key_schema
    else:
        noted.split(store, parts, shards_of)
        known, keys = {noted.note, *entries_under(noted.kept(store), store)}, noted.key
    if suppress is not None:
        split_held(suppress, store, parts, range(len(keys)), shards_of)
        known |= held_entries(suppress, store)
    other = sorted(set(store) - known - set(_OF_RUNNER))
    if other:
        raise StateError(
            f"migrate: the shard keeps {', '.join(other[:3])}, which is not carried over: of another suppress, or of an option that the pipeline "
            "no longer has"
        )
    return parts


def _split_windows(plan: WindowPlan, store: DictStore, parts: Sequence[DictStore]) -> set[str]:
    """Split a shard of windows; gives the names of the entries that are its."""
    known = {WINDOWINGS}
    for name, of in plan.by_windowing.items():
        own = under(name, store)
        prefix = "" if name is None else f"{name}/"
        known |= {prefix + entry for entry in _names_of(of, store, prefix)}
        _split(of, own, [under(name, part) for part in parts])
    return known


def _names_of(plan: WindowPlan, store: DictStore, prefix: str) -> Iterator[str]:
    """Those entries under a prefix, without it, that windows are kept in, and what lies beside them."""
    names = {entry.removeprefix(prefix) for entry in store if entry.startswith(prefix)}
    yield from names & {INDEX, TAKES}
    yield from filter(_SEGMENTS.fullmatch, names)
    yield from entries_under(_beside(plan), names)


def _beside(plan: WindowPlan) -> dict[str, Callable[[WindowPlan, Store], Kept]]:
    """What lies by keys beside the windows of a plan, by the name before its entries: how it is opened."""
    every: dict[str, tuple[bool, Callable[[WindowPlan, Store], Kept]]] = {
        remembered.NAME: (plan.ids_within_us is not None, open_ids),
        reaches.NAME: (plan.counts_rows, reaches.Reaches),
        fallen.NAME: (True, fallen.FallenWindows),  # it stays when retain() is taken away
    }
    return {name: opened for name, (is_kept, opened) in every.items() if is_kept}


def _split(plan: WindowPlan, store: Store, parts: Sequence[Store]) -> None:
    stored = SegmentStore(store, LAYOUT)
    if stored.is_new:
        return
    for opened in _beside(plan).values():
        kept, *of_parts = (opened(plan, one) for one in (store, *parts))
        split_by_key(kept, of_parts, range(len(plan.key_schema)), partial(_shards_of, plan.shards))
    into = [SegmentStore(part, LAYOUT) for part in parts]
    for at, number in enumerate(stored.index["segment"].tolist()):
        windows, inherited = stored.read(number), stored.read_beside(number)
        shard, entry = _shards(plan, windows), {name: int(stored.index[name][at]) for name in LAYOUT.columns}
        for to in np.unique(shard).tolist():
            rows = np.flatnonzero(shard == to)
            panes = None if inherited is None else _of_owners(inherited, rows, windows.num_rows)
            into[to].write(number, windows.take(pa.array(rows)), entry, panes)
    for to, part in enumerate(into):
        part.about = stored.about if to == 0 else {**stored.about, "dropped": {}}
        part.save()


def _shards(plan: WindowPlan, windows: pa.Table) -> Ints:
    """The shard of each of some stored windows."""
    keys = columns_under(windows, "key.", plan.key_schema)
    columns = [column.combine_chunks() for column in keys.columns]
    return _shards_of(plan.shards, columns, factorize_rows(columns, windows.num_rows))


def _shards_of(shards: int, columns: Sequence[pa.Array], by_key: Groups) -> Ints:
    shard: Ints = shards_of_keys(columns, by_key, shards)[by_key.of].astype(np.int64)
    return shard


def _of_owners(inherited: pa.Table, rows: Ints, windows: int) -> pa.Table | None:
    """The inherited panes of some windows of a segment, the owner as a place among them; None: there are none."""
    place = np.full(windows, -1)
    place[rows] = np.arange(len(rows))
    owner = place[inherited["owner"].to_numpy()]
    mine = np.flatnonzero(owner >= 0)
    if not len(mine):
        return None
    at = inherited.schema.get_field_index("owner")
    return inherited.take(pa.array(mine)).set_column(at, "owner", pa.array(owner[mine]))


def put_together(operator: Operator, parts: Sequence[DictStore]) -> DictStore:
    """The store of a shard, from its part of each shard that was there."""
    noted, suppress, whole = _noted(operator), _suppress(operator), DictStore()
    if noted is not None:
        about = noted.put_together(parts, whole)
        if suppress is not None and about:
            noted.write_note(whole, about | _held(suppress, parts, whole, about["clocks"]))
        return whole
    plan = window_plan(operator)
    for name, of in plan.by_windowing.items():
        _put_together(of, [under(name, part) for part in parts], under(name, whole))
    own = [under(name, whole) for name in plan.by_windowing]
    stored = [segments for store in own if not (segments := SegmentStore(store, LAYOUT)).is_new]
    if suppress is not None and stored:
        held = _held(suppress, parts, whole, stored[0].about["clocks"])
        for segments in stored:
            segments.about |= held
            segments.save()
    if plan.windowings and whole:
        whole.put(WINDOWINGS, json.dumps(list(plan.windowings)).encode())
    return whole


def _held(
    suppress: SuppressOperator, parts: Sequence[DictStore], whole: DictStore, clocks: dict[str, Any]
) -> dict[str, Any]:
    """Write what a suppress holds; gives what is noted of it."""
    slots = put_held_together(suppress, parts, whole, Clocks.of(clocks))
    return {"held": {"name": suppress.suppress.name, "updates": slots}}


def _put_together(plan: WindowPlan, parts: Sequence[Store], whole: Store) -> None:
    stored = [segments for part in parts if not (segments := SegmentStore(part, LAYOUT)).is_new]
    if not stored:
        return
    into = SegmentStore(whole, LAYOUT)
    for segments in stored:
        for at, number in enumerate(segments.index["segment"].tolist()):
            entry = {name: int(segments.index[name][at]) for name in LAYOUT.columns}
            into.write(len(into.index["segment"]), segments.read(number), entry, segments.read_beside(number))
    for opened in _beside(plan).values():
        put_by_key_together([opened(plan, segments.store) for segments in stored], opened(plan, whole))
    by_key = not plan.retains  # so the first step cuts all segments anew
    into.about = notes_together([segments.about for segments in stored], plan.identity) | {"by_key": by_key}
    into.save()
    note_takes(whole, plan.takes)
