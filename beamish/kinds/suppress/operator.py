"""The operator of a suppressed stage: it runs in the shards of the stage, after their step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, Keeps
from beamish.contract.kept import KeyedTable, Note
from beamish.contract.operator import Operator, Shard
from beamish.contract.relation import Relation
from beamish.contract.store import Store
from beamish.contract.updates import Updates
from beamish.kinds.suppress.newest_shard import NewestShard
from beamish.kinds.suppress.option import Suppress
from beamish.kinds.suppress.reading import SuppressedRows
from beamish.kinds.suppress.shard import SuppressShard
from beamish.kinds.suppress.tables import held_table


@attrs.define(slots=False, eq=False)
class SuppressOperator(Operator):
    """A stage's operator with a suppress (see ``contract/operator.py``).

    Attributes:
        inner: the stage's operator.
        suppress: the option.
        gives: the output.
    """

    inner: Operator
    suppress: Suppress
    gives: Relation

    def __attrs_post_init__(self) -> None:
        inner = self.inner
        self.takes, self.shards, self.identity, self.cadence = inner.takes, inner.shards, inner.identity, inner.cadence
        self.holds_watermark = inner.holds_watermark
        self.needs_clock = inner.needs_clock or (self.suppress.until.by_clock and self.suppress.holds)

    def reads(self, number: int) -> Sequence[str]:
        return self.inner.reads(number)

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        return self.inner.pack(number, rows)

    def pack_pieces(self, number: int, pieces: Iterable[pa.Table]) -> Iterator[tuple[int, bytes]]:
        return self.inner.pack_pieces(number, pieces)

    def observe(self) -> None:
        self.inner.observe()

    def tables(self) -> Sequence[KeyedTable]:
        return [*self.inner.tables(), held_table(self.inner, self.suppress)]

    def notes(self) -> Sequence[Note]:
        return [attrs.evolve(note, holds=self.suppress.name) for note in self.inner.notes()]

    def rows(self, updates: Sequence[Updates]) -> pa.Table:
        return self.inner.rows(updates)

    def open(self, store: Store) -> Shard:
        kind = NewestShard if self.inner.keeps_newest else SuppressShard
        return kind(self.inner, self.suppress, store)

    @property
    def core(self) -> Operator:
        return self.inner

    def answer(self, asked: Asked) -> Answer:
        held = asked.what is Keeps.HELD
        return SuppressedRows(self.inner, self.suppress.name, self.suppress) if held else self.inner.answer(asked)
