"""What a suppress holds, cut anew for another number of shards, after the windows of its stage (at_rest/rescale.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from beamish.contract.clocks import Clocks
from beamish.contract.input_schemas import schema_texts
from beamish.contract.store import Store
from beamish.kernels.arrays import Ints
from beamish.kernels.codes import factorize_rows
from beamish.kinds.suppress.due import Due
from beamish.kinds.suppress.held_store import ends, entry_name, held_store, write_slots
from beamish.kinds.suppress.held_table import HeldTable
from beamish.kinds.suppress.newest import unite
from beamish.kinds.suppress.newest_shard import RECENT
from beamish.kinds.suppress.operator import SuppressOperator
from beamish.tables.repartition import ShardsOf
from beamish.tables.segment_policy import DEFAULT_POLICY, segment_numbers
from beamish.tables.segmented import Segmented


def held_entries(operator: SuppressOperator, names: Iterable[str]) -> set[str]:
    """Which entries of a shard's store are of the suppress."""
    return {name for name in names if name.startswith(entry_name(operator.suppress.name, ""))}


def split_held(
    operator: SuppressOperator, store: Store, parts: Sequence[Store], key: Iterable[int], shards_of: ShardsOf
) -> None:
    """Give each part of a shard what is held of its keys.

    Args:
        operator: that goes on with it.
        store: all entries of a shard that was there.
        parts: one for each shard of the operator.
        key: the places of the columns by which rows go to shards, among those of a slot's key.
        shards_of: gives the shard of each key.
    """
    held, about = _read(operator, [store])
    keys = held.keys.take(held["key_at"])
    columns = [keys.column(place).combine_chunks() for place in key]
    shard = shards_of(columns, factorize_rows(columns, len(held)))
    # It is asked again when they are put together.
    due = Due(operator.suppress, operator.inner, Clocks.new(len(operator.takes)))
    for to in np.unique(shard).tolist():
        _write(operator, parts[to], held, np.flatnonzero((shard == to) & ~held["gone"]), about, due)


def put_held_together(operator: SuppressOperator, parts: Sequence[Store], whole: Store, clocks: Clocks) -> int:
    """Write what a shard holds, from its part of each shard that was there; gives the number of slots.

    Args:
        operator: that goes on with it.
        parts: as ``split_held`` made them.
        whole: the store of the new shard.
        clocks: where they stand in it.
    """
    held, about = _read(operator, parts)
    if about:
        due = Due(operator.suppress, operator.inner, clocks)
        about = {**about, "takes": schema_texts(operator.takes), "waits_for_pane": due.waits_for_pane}
        _write(operator, whole, held, np.flatnonzero(~held["gone"]), about, due)
    return int((~held["gone"]).sum())


def _read(operator: SuppressOperator, stores: Sequence[Store]) -> tuple[HeldTable, dict[str, Any]]:
    """All that some stores hold, and what is noted about it: the shortest of their spans, and of the rest what one says."""
    held, abouts = HeldTable(operator.inner.key_schema, operator.inner.value_schema), []
    for store in stores:
        own = held_store(store, operator.suppress.name)
        Segmented(own, held).load_all()
        if not own.is_new:
            abouts.append(own.about)
    if operator.inner.keeps_newest:  # what came lately of a slot lies apart from what it was
        unite(held, operator.inner, np.flatnonzero(held["segment"] != RECENT))
        held.count_bytes(np.flatnonzero(held["touched"] & ~held["gone"]))
    span_us = min((about["span_us"] for about in abouts if "span_us" in about), default=DEFAULT_POLICY.shortest_us)
    return held, {**abouts[0], "span_us": span_us} if abouts else {}


def _write(  # noqa: PLR0917 - one caller splits, the other puts together
    operator: SuppressOperator, store: Store, held: HeldTable, rows: Ints, about: dict[str, Any], due: Due
) -> None:
    into = held_store(store, operator.suppress.name)
    into.about = dict(about)
    number = np.full(len(held), RECENT)
    if not operator.inner.keeps_newest:
        number = segment_numbers(about["span_us"], ends(held), held.keys, held["key_at"])
    for segment in np.unique(number[rows]).tolist():
        write_slots(into, segment, held, rows[number[rows] == segment], due.may_leave)
    into.save()
