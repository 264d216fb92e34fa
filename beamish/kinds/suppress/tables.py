"""The declared state of a suppress (contract/kept.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from beamish.contract.clocks import Clocks
from beamish.contract.input_schemas import schema_texts
from beamish.contract.kept import KeyedTable, Segments
from beamish.contract.operator import Operator
from beamish.contract.store import Store
from beamish.kernels.arrays import NO_VALUE, Ints
from beamish.kinds.suppress.due import Due
from beamish.kinds.suppress.held_store import ends, entries, held_store, layout_of
from beamish.kinds.suppress.held_table import HeldTable
from beamish.kinds.suppress.newest import unite
from beamish.kinds.suppress.newest_shard import RECENT
from beamish.kinds.suppress.option import Suppress
from beamish.tables.segment_policy import DEFAULT_POLICY, segment_numbers
from beamish.tables.segmented import Segmented


def held_table(operator: Operator, suppress: Suppress) -> KeyedTable:
    """Declare the slots of a suppress; they are partitioned like the stage's rows.

    Args:
        operator: the stage's.
        suppress: the option.
    """
    keys = pa.schema([(f"key.{field.name}", field.type) for field in operator.key_schema])
    own = operator.tables()
    key = pa.schema([keys.field(name) for name in own[0].key.names]) if own else keys
    return KeyedTable(layout_of(suppress.name), key, lambda store, parts: _restore(operator, suppress, store, parts))


def _restore(operator: Operator, suppress: Suppress, store: Store, parts: Sequence[Segments]) -> None:
    held = HeldTable(operator.key_schema, operator.value_schema)
    for part in parts:
        for number in part.index["segment"].tolist():
            rows, companions = part.read(number), part.read_companions(number)
            at = held.read(rows, np.full(rows.num_rows, number))
            if companions is not None:
                held.read_companions(companions, at)
    if operator.keeps_newest:  # recent updates of a slot are stored apart from older ones
        unite(held, operator, np.flatnonzero(held["segment"] != RECENT))
        held.count_bytes(np.flatnonzero(held["touched"] & ~held["gone"]))
    notes = [(note, about) for note in operator.notes() if (about := note.read(store)) is not None]
    due = Due(suppress, operator, Clocks.of(notes[0][1]["clocks"]))
    span_us = min(
        (part.about["span_us"] for part in parts if "span_us" in part.about), default=DEFAULT_POLICY.shortest_us
    )
    into = held_store(store, suppress.name)
    takes = schema_texts(operator.takes)
    into.about = {**parts[0].about, "span_us": span_us, "takes": takes, "waits_for_pane": due.waits_for_pane}
    held["touched"][:], held["segment"][:] = True, NO_VALUE
    Segmented(into, held).write(lambda: _numbers(operator, held, span_us), entries(held, due.may_leave))
    into.save()
    for note, about in notes:
        note.write(store, {**about, "held": {"name": suppress.name, "updates": into.rows}})


def _numbers(operator: Operator, held: HeldTable, span_us: int) -> Ints:
    if operator.keeps_newest:
        return np.full(len(held), RECENT)
    return segment_numbers(span_us, ends(held), held.keys, held["key_at"])
