"""An operator made of operators: a tree of stages in one shard, each of which takes the rows that others give in the same step.

Each stage has the state of a shard of its own, under its name in the store. In a step (docs/rules/running.md#fused-stages)
each takes what those before it gave; then its watermark moves to theirs; then it takes rows of its own sources. All give their updates
before one of them stores anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.drops import Counts
from beamish.contract.operator import Cadence, Operator, Shard, counts_of_step
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.updates import Updates
from beamish.tables.entries import FUSED, StoreUnder
from beamish.tables.notes import KIND_ENTRIES, not_fused
from beamish.tables.under import note_under, table_under


def name_of(number: int) -> str:
    """The name of a stage's entries, among those of others; ``number``: of the stage, from 1."""
    return f"stage {number}"


@attrs.frozen(eq=False)
class Link:
    """A stage of a fused operator.

    Attributes:
        number: the stage's, from 1, in the order of ``Flow.flows``.
        operator: of the stage.
        inputs: per input the place of the link whose rows it takes; None: an input of the fused operator.
        path: the numbers of the inputs that lead to it from the last stage: ``.1.0``.
        by: the positions of the keys that decide the shard; None: all.
    """

    number: int
    operator: Operator
    inputs: tuple[int | None, ...]
    path: str
    by: tuple[int, ...] | None

    @property
    def name(self) -> str:
        """The name of its entries."""
        return name_of(self.number)

    @property
    def places(self) -> list[int]:
        """The numbers of ``path``."""
        return [int(number) for number in self.path.split(".")[1:]]

    @property
    def shards(self) -> int:
        """The number of shards."""
        return self.operator.shards

    def notes(self) -> Sequence[Note]:
        """Its metadata."""
        return self.operator.notes()

    def tables(self) -> Iterator[KeyedTable]:
        """Its tables, partitioned by the keys that decide the shard."""
        for table in self.operator.tables():
            key = table.key if self.by is None else pa.schema([table.key.field(at) for at in self.by])
            yield attrs.evolve(table, key=key)


@attrs.define(slots=False, eq=False)
class FusedOperator(Operator):
    """The operator of a tree of stages (see ``contract/operator.py``).

    Attributes:
        links: its stages, each after those it takes from; the last one's output is its output.
    """

    links: Sequence[Link]
    cadence = Cadence.EVERY_STEP
    """A stage compares late panes with the watermark of the step before, which its shards must have seen, rows or not."""

    def __attrs_post_init__(self) -> None:
        last = self.links[-1].operator
        self.gives, self.shards = last.gives, last.shards
        leaves = [(link, number) for link in self.links for number, of in enumerate(link.inputs) if of is None]
        # As the pipeline has them, since Spark knows sources by their order.
        self._leaves = sorted(leaves, key=lambda leaf: [*leaf[0].places, leaf[1]])
        self.takes = [link.operator.takes[number] for link, number in self._leaves]
        each = [link.operator for link in self.links]
        self.identity = {link.name: link.operator.identity for link in self.links}
        self.needs_clock = any(one.needs_clock for one in each)
        self.holds_watermark = any(one.holds_watermark for one in each)

    @property
    def leaves(self) -> Sequence[tuple[Link, int]]:
        """The stage that takes each input, and the number that it has there."""
        return self._leaves

    def reads(self, number: int) -> Sequence[str]:
        link, own = self._leaves[number]
        return link.operator.reads(own)

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        link, own = self._leaves[number]
        return self._addressed(link, link.operator.pack(own, rows))

    def pack_pieces(self, number: int, pieces: Iterable[pa.Table]) -> Iterator[tuple[int, bytes]]:
        link, own = self._leaves[number]
        return self._addressed(link, link.operator.pack_pieces(own, pieces))

    def _addressed(self, link: Link, packed: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """Payloads with the place of their link as last byte, which leaves their buffers aligned."""
        place = bytes([next(at for at, one in enumerate(self.links) if one is link)])
        return ((shard, payload + place) for shard, payload in packed)

    def tables(self) -> Sequence[KeyedTable]:
        return [table_under(link.name, table) for link in self.links for table in link.tables()]

    def notes(self) -> Sequence[Note]:
        return [
            note_under(link.name, note, FUSED, self.note_stages)
            for link in self.links
            for note in link.operator.notes()
        ]

    def note_stages(self, store: Store) -> None:
        """Store which stages a shard has."""
        store.put(FUSED, json.dumps(stages_as_stored(self.links)).encode())

    def observe(self) -> None:
        for link in self.links:
            link.operator.observe()

    def open(self, store: Store) -> FusedShard:
        return FusedShard(self, store)

    def rows(self, updates: Sequence[Updates]) -> pa.Table:
        return self.links[-1].operator.rows(updates)


def stages_as_stored(links: Sequence[Link]) -> dict[str, Any]:
    """The stages that a shard stores: the number of each, with the positions of the keys that decide the shard; None: all."""
    return {str(link.number): None if link.by is None else list(link.by) for link in links}


class FusedShard(Shard):
    """Some of the keys of fused stages (see ``contract/operator.py``).

    Raises:
        StateError: the state was written by other stages, or by each stage apart.
    """

    def __init__(self, operator: FusedOperator, store: Store) -> None:
        self.operator: FusedOperator = operator
        self._links, self._store = operator.links, store
        self._is_new = not check_fused(store, stages_as_stored(self._links))
        self._shards = [link.operator.open(StoreUnder(link.name, store)) for link in self._links]
        self._last = self._shards[-1]
        self.clocks, self.dropped = self._last.clocks, self._last.dropped
        self._handed: list[tuple[pa.Table, Mapping[str, int]]] = []

    def begin(self, payloads: Sequence[bytes]) -> None:
        for shard, own in zip(self._shards, self._by_link(payloads), strict=True):
            if own:
                shard.begin(own)

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        came = self._by_link(payloads)
        of_source = {
            (link.number, number): us for (link, number), us in zip(self.operator.leaves, sources_us, strict=True)
        }
        self._handed, updates = [], list[Updates]()
        for place, (link, shard) in enumerate(zip(self._links, self._shards, strict=True)):
            inputs_us = []
            for number, before in enumerate(link.inputs):
                own = of_source[link.number, number] if before is None else self._shards[before].watermark_us
                inputs_us.append(own)
                if before is not None:
                    came[place] += _handed_to(link.operator, number, self._handed[before][0])
            dropped = dict(shard.dropped)
            updates = list(shard.updates(inputs_us, clock_us, came[place]))
            if shard is not self._last:
                self._handed.append((link.operator.rows(updates), dropped))
        return updates

    def _by_link(self, payloads: Sequence[bytes]) -> list[list[bytes]]:
        of_links: list[list[bytes]] = [[] for _ in self._links]
        for payload in payloads:
            of_links[payload[-1]].append(payload[:-1])
        return of_links

    def save(self) -> None:
        for shard in self._shards:
            shard.save()
        if self._is_new:
            self.operator.note_stages(self._store)
            self._is_new = False

    @property
    def handed(self) -> Mapping[str, int]:
        """How many rows each stage but the last gave in the step, by its name."""
        return {link.name: rows.num_rows for link, (rows, _) in zip(self._links, self._handed, strict=False)}

    def counts_before(self, clock_us: int | None) -> Iterator[tuple[str, dict[str, int | None]]]:
        """The path of each stage but the last, with its metrics of the step; ``clock_us``: of the step."""
        for link, shard, (rows, dropped) in zip(self._links, self._shards, self._handed, strict=False):
            yield link.path, counts_of_step(shard, rows, dropped, clock_us)

    @property
    def watermark_us(self) -> int | None:
        return self._last.watermark_us

    @property
    def next_due_us(self) -> int | None:
        return min((due for shard in self._shards if (due := shard.next_due_us) is not None), default=None)

    @property
    def counts(self) -> Counts:
        return self._last.counts


def _handed_to(operator: Operator, number: int, rows: pa.Table) -> list[bytes]:
    """The rows of a stage, as payloads for the same shard of another."""
    if not rows.num_rows:
        return []
    return [payload for _, payload in operator.pack(number, operator.takes[number].with_fields(rows))]


def check_fused(store: Store, stages: Mapping[str, Any]) -> bool:
    """Whether a shard's store has these stages; False: it is new.

    Args:
        store: the shard's.
        stages: as ``stages_as_stored``.

    Raises:
        StateError: it has other stages, or a single one.
    """
    stored = store.get(FUSED)
    if stored is None:
        if any(store.get(entry) is not None for entry in KIND_ENTRIES):
            raise not_fused("each stage in an operator of its own", "fused")
        return False
    then = json.loads(stored)
    if then != dict(stages):
        raise not_fused(f"stages {', '.join(then)} in one operator", f"stages {', '.join(stages)} in one")
    return True
