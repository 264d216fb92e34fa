"""A chain: an operator, and parts of its stage that take its updates in the same shard and step: a suppress, computed columns.

A chained part may have state: tables of its own beside those of the operator, in the same store. It reads the operator's clocks.
All parts take the updates of a step before anything is stored (law 5 of ``contract/operator.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, Compared, Keeps
from beamish.contract.drops import Counts
from beamish.contract.operator import Chained, Operator, Shard
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.stored_keys import StoredPart
from beamish.contract.updates import Updates


@attrs.define(slots=False, eq=False)
class Chain(Operator):
    """An operator with chained parts (see ``contract/operator.py``).

    Attributes:
        of: the operator.
        chained: the parts, in order; at least one.
    """

    of: Operator
    chained: Sequence[Chained]

    def __attrs_post_init__(self) -> None:
        core = self.of
        self.takes, self.shards, self.identity, self.cadence = core.takes, core.shards, core.identity, core.cadence
        self.holds_watermark, self.gives = core.holds_watermark, self.chained[-1].gives
        self.needs_clock = core.needs_clock or any(part.needs_clock for part in self.chained)

    @property
    def core(self) -> Operator:
        return self.of

    def reads(self, number: int) -> Sequence[str]:
        return self.of.reads(number)

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        return self.of.pack(number, rows)

    def pack_pieces(self, number: int, pieces: Iterable[pa.Table]) -> Iterator[tuple[int, bytes]]:
        return self.of.pack_pieces(number, pieces)

    def observe(self) -> None:
        self.of.observe()

    def tables(self) -> Sequence[KeyedTable]:
        return [*self.of.tables(), *(table for part in self.chained for table in part.tables())]

    def notes(self) -> Sequence[Note]:
        holds = next((part.holds for part in self.chained if part.holds is not None), None)
        return [attrs.evolve(note, holds=holds) for note in self.of.notes()]

    def open(self, store: Store) -> Shard:
        return ChainShard(self, store)

    def rows(self, updates: Sequence[Updates]) -> pa.Table:
        return reduce(lambda rows, part: part.rows(rows), self.chained, self.of.rows(updates))

    def answer(self, asked: Asked) -> Answer:
        if asked.what is Keeps.KEYS:
            return super().answer(asked)
        return next(
            (found for part in self.chained if (found := part.answer(asked)) is not None), None
        ) or self.of.answer(asked)

    @property
    def stored_keys(self) -> pa.Schema:
        return self.of.stored_keys

    @property
    def sharded_by(self) -> Sequence[str]:
        return self.of.sharded_by

    def stored(self, store: Store) -> Iterator[StoredPart]:
        yield from self.of.stored(store)
        for part in self.chained:
            yield from part.stored(store)

    def compared(self, store: Store) -> Iterator[Compared]:
        return self.of.compared(store)

    def changeable(self, store: Store) -> Mapping[str, Any] | None:
        return self.of.changeable(store)


class ChainShard(Shard):
    """Some of the keys of a chain (see ``contract/operator.py``)."""

    def __init__(self, operator: Chain, store: Store) -> None:
        self.operator = operator
        self._core = operator.of.open(store)
        opened = (part.open(store, self._core) for part in operator.chained)
        self._parts = [shard for shard in opened if shard is not None]
        self.clocks, self.dropped = self._core.clocks, self._core.dropped

    def begin(self, payloads: Sequence[bytes]) -> None:
        self._core.begin(payloads)

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        return reduce(
            lambda updates, part: part.take(updates), self._parts, self._core.updates(sources_us, clock_us, payloads)
        )

    def save(self) -> None:
        for part in self._parts:
            part.save()
        self._core.save()

    @property
    def watermark_us(self) -> int | None:
        return self._core.watermark_us

    @property
    def next_due_us(self) -> int | None:
        each = (self._core.next_due_us, *(part.next_due_us for part in self._parts))
        return min((us for us in each if us is not None), default=None)

    @property
    def counts(self) -> Counts:
        return self._core.counts
