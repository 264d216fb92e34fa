"""A suppress as a part of a stage, chained to its operator: its declared state, and buffered updates as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, Keeps
from beamish.contract.clocks import Clocks
from beamish.contract.held import HIDDEN, HeldRows
from beamish.contract.operator import Chained, Operator, Shard
from beamish.contract.relation import Relation
from beamish.contract.stored import KeyedTable, Segments, Store, schema_texts
from beamish.contract.stored_keys import StoredPart
from beamish.instants import LATEST_US, instant_in_words
from beamish.kernels.buffers import NO_VALUE, Ints
from beamish.kinds.suppress.buffer import HeldTable, ends, entries, entry_name, held_store, layout_of
from beamish.kinds.suppress.emission import Due, net_changes
from beamish.kinds.suppress.option import Suppress
from beamish.kinds.suppress.shard import RECENT, NewestShard, SuppressShard
from beamish.kinds.suppress.slots import merge_slots
from beamish.tables.segment_policy import DEFAULT_POLICY, SegmentPolicy, segment_numbers
from beamish.tables.segments import Segmented


@attrs.frozen(eq=False)
class SuppressedRows(HeldRows):
    """The updates that a suppress holds.

    Attributes:
        suppress: what holds them.
    """

    suppress: Suppress

    def needs(self, notes: Store) -> Iterable[str]:
        return (entry_name(self.name, ""),)

    def held(self, store: Store) -> tuple[pa.Table, Ints, Ints]:
        held, clocks = self._slots(store)
        # Each row has its slot's number in place of its pane's.
        held["index"][:], held.taken["index"][:] = np.arange(len(held)), held.taken["owner"]
        at = np.flatnonzero(~held["gone"])
        rows = self.operator.rows([net_changes(held, self.operator.slots, at, final=False)])
        slot = rows["pane"].combine_chunks().field("index").to_numpy()
        due_us = Due(self.suppress, self.operator.slots, clocks).due_us(held)[slot]
        return rows, held["since_clock_us" if self.suppress.until.by_clock else "since_us"][slot], due_us

    def _slots(self, store: Store) -> tuple[HeldTable, Clocks]:
        """All slots of a shard, and its clocks."""
        entries = held_store(store, self.suppress.name)
        held = HeldTable(self.operator.slots.keys, self.operator.slots.values)
        Segmented(entries, held).load(sorted(entries.index["segment"].tolist()))
        if self.operator.slots.keeps_newest:
            merge_slots(held, self.operator.slots, np.flatnonzero(held["segment"] != RECENT))
        held["has_pane"][:] |= held["has_parts"]  # parts of merged windows wait for a pane
        return held, self.operator.open(store).clocks


def held_table(operator: Operator, suppress: Suppress) -> KeyedTable:
    """Declare the slots of a suppress; they are partitioned like the stage's rows.

    Args:
        operator: the stage's.
        suppress: the option.
    """
    keys = pa.schema([(f"key.{field.name}", field.type) for field in operator.slots.keys])
    own = operator.tables()
    key = pa.schema([keys.field(name) for name in own[0].key.names]) if own else keys
    return KeyedTable(layout_of(suppress.name), key, lambda store, parts: _restore(operator, suppress, store, parts))


def _restore(operator: Operator, suppress: Suppress, store: Store, parts: Sequence[Segments]) -> None:
    held = HeldTable(operator.slots.keys, operator.slots.values)
    for part in parts:
        for number in part.index["segment"].tolist():
            rows, companions = part.read(number), part.read_companions(number)
            at = held.read(rows, np.full(rows.num_rows, number))
            if companions is not None:
                held.read_companions(companions, at)
    if operator.slots.keeps_newest:  # recent updates of a slot are stored apart from older ones
        merge_slots(held, operator.slots, np.flatnonzero(held["segment"] != RECENT))
        held.count_bytes(np.flatnonzero(held["touched"] & ~held["gone"]))
    notes = [(note, about) for note in operator.notes() if (about := note.read(store)) is not None]
    due = Due(suppress, operator.slots, Clocks.of(notes[0][1]["clocks"]))
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
    if operator.slots.keeps_newest:
        return np.full(len(held), RECENT)
    return segment_numbers(span_us, ends(held), held.keys, held["key_at"])


@attrs.define(slots=False, eq=False)
class ChainedSuppress(Chained):
    """A suppress after an operator (see ``contract/chain.py``).

    Attributes:
        of: the operator.
        suppress: the option.
        gives: the output.
        policy: how slots are partitioned into segments.
    """

    of: Operator
    suppress: Suppress
    gives: Relation
    policy: SegmentPolicy = DEFAULT_POLICY

    def __attrs_post_init__(self) -> None:
        self.needs_clock = self.suppress.until.by_clock and self.suppress.holds
        self.holds = self.suppress.name

    def tables(self) -> Sequence[KeyedTable]:
        return [held_table(self.of, self.suppress)]

    def open(self, store: Store, before: Shard) -> SuppressShard:
        kind = NewestShard if self.of.slots.keeps_newest else SuppressShard
        return kind(before, self.suppress, store, self.policy)

    def stored(self, store: Store) -> Iterator[StoredPart]:
        rows, _, due_us = SuppressedRows(self.of, self.suppress.name, self.suppress).held(store)
        names, by_clock = self.of.stored_keys.names, self.suppress.until.by_clock
        then = f"the suppress {self.suppress.name!r} emits them"
        by_clocks = [
            f"{then} when the clock reaches {instant_in_words(us)}" * (us <= LATEST_US) for us in due_us.tolist()
        ]
        times = rows["timestamp"].combine_chunks().cast(pa.int64()).fill_null(0).to_numpy()
        yield StoredPart(
            f"updates buffered by the suppress {self.suppress.name!r}",
            rows.select(names),
            times,
            times,
            values=rows.drop_columns([name for name in rows.schema.names if name in {*HIDDEN, "window", *names}]),
            due_us=None if by_clock else due_us,
            then=by_clocks if by_clock else then,
        )

    def answer(self, asked: Asked) -> Answer | None:
        return SuppressedRows(self.of, self.suppress.name, self.suppress) if asked.what is Keeps.HELD else None
