"""A stage whose updates are buffered by a suppress (docs/rules/suppress.md#suppress).

It is fused with the stage that it suppresses: it has the same inputs and runs in its shards, without another shuffle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.at_rest import Keeps
from beamish.contract.chain import Chain
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation, SlotSemantics
from beamish.contract.stage import Stage
from beamish.contract.stored import Store, widest, with_schemas
from beamish.errors import PipelineError, StateError
from beamish.kinds.suppress.buffer import held_store
from beamish.kinds.suppress.operator import ChainedSuppress
from beamish.kinds.suppress.option import Buffer, Suppress, UntilWindowCloses
from beamish.modes import WhenFull


@attrs.frozen
class Suppressed(Stage):
    """A stage and its suppress (see ``contract/stage.py``).

    Attributes:
        of: the stage.
        suppress: the option.
    """

    of: Stage
    suppress: Suppress

    @property
    def _own(self) -> Stage:
        return self.of.suppressed_by(self.suppress)

    @property
    def is_complete(self) -> bool:
        return self.of.is_complete

    @property
    def with_dropped(self) -> bool:
        return self.of.with_dropped

    @property
    def as_input(self) -> Stage:
        return attrs.evolve(self, of=self.of.as_input)

    @property
    def final(self) -> Stage:
        return self._own.final

    def declaring(self, call: str, **changes: Any) -> Stage:
        raise PipelineError(f"{call} after suppress(...): it configures the suppressed stage; call it before suppress")

    def suppressed_by(self, suppress: Suppress) -> Stage:
        raise PipelineError(
            f"suppress({suppress.until!r}): the stage is suppressed already, {self.suppress.until.describe()}; remove one of the two"
        )

    def check_form(self, call: str) -> None:
        self.of.check_form(call)

    def calls(self) -> Iterable[str] | None:
        calls = self.of.calls()
        return None if calls is None else (*calls, f".then({self.suppress!r})")

    @property
    def needs_event_time(self) -> bool:
        return self.of.needs_event_time

    def check(self, takes: Sequence[Relation]) -> None:
        self._own.check(takes)

    def check_stream(self, takes: Sequence[Relation]) -> None:
        self._own.check_stream(takes)

    def gives(self, takes: Sequence[Relation]) -> Relation:
        gives, once = self._own.gives(takes), isinstance(self.suppress.until, UntilWindowCloses)
        return attrs.evolve(gives, follows=SlotSemantics.ONCE if once else gives.follows)

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        return self.of.asks(takes, number)

    def asks_whole_rows(self, takes: Sequence[Relation], number: int) -> bool:
        return self.of.asks_whole_rows(takes, number)

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        own = self._own.bind(takes, shards=shards)
        suppress = ChainedSuppress(
            own.core, self.suppress, attrs.evolve(self.gives(takes), schema=own.core.gives.schema)
        )
        return Chain(own.core, [suppress, *own.chained])

    # Stored state (operator.py)

    @property
    def core(self) -> Stage:
        return self.of

    def shard_columns(self, takes: Sequence[Relation]) -> tuple[str, ...]:
        return self.of.shard_columns(takes)

    @property
    def counts_rows(self) -> bool:
        return self.of.counts_rows

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {**self.of.keeps(takes), Keeps.HELD: self.suppress.name}

    def noted(self, takes: Sequence[Relation], notes: Sequence[Store], what: Keeps) -> Sequence[Relation]:
        name = self.suppress.name
        abouts = [about for store in notes if "takes" in (about := held_store(store, name).about)]
        schemas = widest(json.dumps(about["takes"]).encode() for about in abouts)
        if schemas is None and what is Keeps.HELD:
            raise StateError(f"held({name!r}): there is no suppress of this name")
        return self.of.noted(takes, notes, what) if schemas is None else with_schemas(takes, schemas)

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        for subject, words in self._own.describe(takes, operator):
            waits = subject == "clock" and self.suppress.holds and self.suppress.until.by_clock
            yield (
                subject,
                "needed: a heartbeat row carries the batch's clock to every shard, which ends waits"
                if waits
                else words,
            )
        if self.suppress.holds:
            yield "buffer", _buffer(self.suppress.buffer, None if operator is None else operator.shards)


def _buffer(buffer: Buffer, shards: int | None) -> str:
    """The limits per shard and in total, and what happens when it is full."""
    if not buffer.is_limited:
        return "no limits: the buffer is in the state store, and nothing is emitted early"
    limits = [f"{most:,} {what}" for most, what in _limits(buffer)]
    words = f"per shard at most {' and '.join(limits)}"
    if shards is not None:
        words += (
            f", in all {shards} shards {' and '.join(f'{most * shards:,} {what}' for most, what in _limits(buffer))}"
        )
    return f"{words}; {_WHEN_FULL[buffer.policy]}"


def _limits(buffer: Buffer) -> Iterator[tuple[int, str]]:
    spills = buffer.policy is WhenFull.SPILL
    if buffer.max_records is not None:
        yield buffer.max_records, "updates in memory" if spills else "updates"
    if buffer.max_bytes is not None:
        yield buffer.max_bytes, "bytes of keys and values" + " in memory" * spills


_WHEN_FULL = {
    WhenFull.EMIT_EARLY: "when full, the update due first is emitted early",
    WhenFull.SHUT_DOWN: "when full, the query stops; it continues from its checkpoint with a larger buffer",
    WhenFull.SPILL: "the rest waits in the state store; nothing is emitted early",
}
