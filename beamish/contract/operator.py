"""The border between engine and runners: an operator is a stage bound to its data; a shard does its work.

Input rows are packed into payloads, bytes for one shard each, where the rows are; payloads are sent to their shards; a shard's
step gives updates, which the operator turns into rows. The runner owns the order of steps, the transport of payloads, the store
and the clock readings; the operator owns the meaning of the bytes.

Laws (tests/laws/test_operators.py, for every operator):

1. How rows are packed changes nothing: into one payload or several, in any order, at once or piece by piece.
2. The number of shards changes nothing, except for the order of rows between keys.
3. Reopening a shard from the bytes in its store, between two steps, changes nothing.
4. A step of nothing - no payload, no clock that moves - gives nothing, and leaves the stored bytes as they are. (With
   ``EVERY_STEP`` the number of such steps may count; a shard's first step stores what it is.)
5. ``updates`` writes nothing: ``save`` does, when rows are made of them; so a step that raises leaves the stored bytes as they were.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, Compared, Keeps, read_key
from beamish.contract.clocks import Clocks
from beamish.contract.drops import DROPPED, Counts, counts_of_output
from beamish.contract.keys import times_of, to_shards
from beamish.contract.relation import Relation
from beamish.contract.slots import Slots
from beamish.contract.stored import KeyedTable, Note, Store
from beamish.contract.stored_keys import StoredKeys, StoredPart
from beamish.contract.updates import Updates
from beamish.kernels.buffers import cast_table
from beamish.kernels.codes import normalise
from beamish.kernels.column_names import EVENT_TIME
from beamish.watermarks import Watermark, known_us


class Cadence(enum.Enum):
    """When a shard must be stepped, besides steps with payloads."""

    WHEN_DUE = "when_due"
    """When the watermark reaches its ``next_due_us``, and when the clock moves if the operator needs the clock."""
    EVERY_STEP = "every_step"
    """In every step, since the number of steps matters."""


@attrs.frozen
class Native:
    """A native Spark operator.

    Attributes:
        name: AGGREGATION, WINDOW_FUNCTION or OVER.
        plan: the stage's plan that it implements.
    """

    AGGREGATION: ClassVar = "aggregation"
    WINDOW_FUNCTION: ClassVar = "window function"
    OVER: ClassVar = "window functions"

    name: str
    plan: Any


class Shard(Protocol):
    """A shard: some of the keys of an operator.

    Attributes:
        operator: it turns the shard's updates into rows.
        clocks: the current clocks.
        watermark_us: output watermark, forwarded to the next stage; None before there is one.
        next_due_us: the least watermark at which something is due; None: nothing is.
        dropped: number of rows dropped so far, by reason.
        counts: metrics of the last step.
        held: the ``name`` of the suppress that the state was written with, and the number of buffered ``updates``, stored by ``save``;
            None: no suppress so far.
    """

    operator: Operator
    clocks: Clocks
    dropped: Mapping[str, int] = MappingProxyType({})
    held: Mapping[str, Any] | None = None

    @property
    def watermark_us(self) -> int | None:
        return known_us(self.clocks.watermark_us)

    @property
    def next_due_us(self) -> int | None: ...
    @property
    def counts(self) -> Counts:
        return Counts()

    @property
    def handed(self) -> Mapping[str, int]:
        """How many rows each of fused stages but the last gave in the step, by its name."""
        return {}

    def counts_before(self, clock_us: int | None) -> Iterator[tuple[str, dict[str, int | None]]]:
        """The metrics of the step of fused stages but the last, with their paths; ``clock_us``: of the step."""
        yield from ()

    def begin(self, payloads: Sequence[bytes]) -> None:
        """Load initial rows before the first step, for inputs that a stage ``may_begin_with``."""
        raise TypeError(f"{type(self).__name__} has no initial rows")

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        """Advance the clocks and process payloads; those from stages are processed before the clocks move. Nothing is written yet.

        Args:
            sources_us: per input the watermark of its source or upstream stage; microseconds, None or not
                ahead: unchanged.
            clock_us: the processing-time clock; microseconds, None or not ahead: unchanged.
            payloads: rows from ``Operator.pack``.

        Returns:
            the updates, in order, in any number of parts.
        """
        ...

    def save(self) -> None:
        """Write the changes of the step."""
        ...

    def step(self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]) -> pa.Table:
        """A whole step: updates as rows of the operator's ``gives.schema``; then save."""
        rows = self.operator.rows(self.updates(sources_us, clock_us, payloads))
        self.save()
        return rows


class ChainedShard(Protocol):
    """The state of a chained part in a shard."""

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which something is due; None: nothing is."""
        ...

    def take(self, updates: Sequence[Updates]) -> Sequence[Updates]:
        """Process the updates of a step, those of the part before; returns its own. Nothing is written yet."""
        ...

    def save(self) -> None:
        """Write the changes of the step; before the operator's shard does."""
        ...


class Chained(Protocol):
    """A part of a stage that takes the updates of its operator. Subclasses override methods that differ.

    Attributes:
        gives: the output.
        needs_clock: whether it needs the processing-time clock.
        holds: the name of the buffer that it has; None: none.
    """

    gives: Relation
    needs_clock: bool = False
    holds: str | None = None

    def tables(self) -> Sequence[KeyedTable]:
        """The keyed tables of its shards; empty: it is stateless."""
        return ()

    def open(self, store: Store, before: Shard) -> ChainedShard | None:
        """Its state in a store; None: it is stateless.

        Args:
            store: the shard's.
            before: the shard of the operator, whose clocks it reads.
        """
        return None

    def rows(self, rows: pa.Table) -> pa.Table:
        """Rows of the part before as rows of ``gives``."""
        return rows

    def answer(self, asked: Asked) -> Answer | None:
        """See ``contract/at_rest.py``; None: it does not store such rows."""
        return None

    def stored(self, store: Store) -> Iterator[StoredPart]:
        """Its entries of keys in a shard, beside those of its operator."""
        return iter(())


class Operator(Protocol):
    """A stage bound to the columns and types of its inputs. Subclasses override what differs.

    Attributes:
        takes: its inputs, in order.
        gives: its output.
        shards: number of shards.
        identity: the parts that may not change under a checkpoint, as JSON: a different identity is rejected.
        needs_clock: whether its shards need the processing-time clock.
        cadence: when its shards must be stepped. (Downstream of a stage: in every step, since panes arrive before the watermark moves.)
        holds_watermark: whether the forwarded watermark may trail the input watermark.
        chained: the parts of its stage that take its updates (``contract/chain.py``).
    """

    takes: Sequence[Relation]
    gives: Relation
    shards: int
    identity: Mapping[str, Any]
    needs_clock: bool = False
    cadence: Cadence = Cadence.WHEN_DUE
    holds_watermark: bool = False
    chained: Sequence[Chained] = ()

    def moves_by(self, policies: Sequence[Watermark]) -> None:
        """Set clock requirements from watermark policies: whether they need the clock, and whether one counts steps."""
        self.needs_clock = any(policy.needs_clock for policy in policies)
        counts = any(policy.idle_timeout is not None for policy in policies)
        self.cadence = Cadence.EVERY_STEP if counts else Cadence.WHEN_DUE

    def reads(self, number: int) -> Sequence[str]:
        """The columns of input ``number`` that ``pack`` needs, besides the event time; by default all."""
        return list(self.takes[number].columns.names)

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        """Pack rows into payloads; by default all that it reads, by the keys of their input, with ``EVENT_TIME``.

        Args:
            number: the number of their input.
            rows: from a source the columns of ``reads`` and ``EVENT_TIME``; from a stage its output, without dropped rows.

        Returns:
            pairs of shard number and payload; a shard may get several.
        """
        takes = self.takes[number]
        schema = pa.schema([takes.columns.field(name) for name in self.reads(number)])
        own = cast_table(rows.select(schema.names), schema).append_column(EVENT_TIME, times_of(takes, rows))
        keys = [normalise(own[name].combine_chunks()) for name in takes.keys]
        yield from to_shards(own, keys, takes, number, self.shards)

    def pack_pieces(self, number: int, pieces: Iterable[pa.Table]) -> Iterator[tuple[int, bytes]]:
        """Pack rows that arrive in pieces, like ``pack``; payloads may be delayed, to have fewer and larger ones."""
        for rows in pieces:
            yield from self.pack(number, rows)

    def tables(self) -> Sequence[KeyedTable]:
        """The keyed tables of its shards; rows are partitioned by the key of the first."""
        return ()

    def notes(self) -> Sequence[Note]:
        """The metadata of its shards; empty: they cannot be rescaled."""
        return ()

    def observe(self) -> None:
        """Enable metrics that shards compute only if they are observed; called before rows are packed."""
        return

    def open(self, store: Store) -> Shard:
        """The shard whose state is in a store, or a new one.

        Raises:
            StateError: the state belongs to another operator, number of shards or format.
        """
        ...

    def rows(self, updates: Sequence[Updates]) -> pa.Table:
        """The updates of a step as rows of output, in ``gives.schema``; without windows that merged away."""
        schema = self.gives.schema
        assert schema is not None  # noqa: S101 - it is bound
        return pa.concat_tables([part.rows(schema) for part in updates] or [schema.empty_table()])

    @property
    def core(self) -> Operator:
        """The operator without chained parts."""
        return self

    @cached_property
    def slots(self) -> Slots:
        """Its updates by key and window, for a suppress."""
        keys, values = (
            pa.schema([self.gives.columns.field(name) for name in names])
            for names in (self.gives.keys, self.gives.values)
        )
        return Slots(keys=keys, values=values)

    # Stored state (contract/at_rest.py)

    def answer(self, asked: Asked) -> Answer:
        """See ``contract/at_rest.py``."""
        if asked.what is Keeps.KEYS:
            return StoredKeys(self, read_key(asked.what, asked.key, self.stored_keys))
        raise TypeError(f"{type(self).__name__} does not store {asked.what}, which its stage declares")

    @property
    def stored_keys(self) -> pa.Schema:
        """The columns of the keys that its state is stored by; for a stage that ``keeps`` KEYS."""
        columns = self.takes[0].columns
        return pa.schema([columns.field(name) for name in self.takes[0].keys])

    @property
    def sharded_by(self) -> Sequence[str]:
        """Those of them that decide the shard."""
        return list(self.stored_keys.names)

    def stored(self, store: Store) -> Iterator[StoredPart]:
        """The entries of its keys in a shard (``contract/stored_keys.py``); for a stage that ``keeps`` KEYS."""
        return iter(())

    def compared(self, store: Store) -> Iterator[Compared]:
        """Differences to a shard's metadata, besides those that ``open`` rejects; empty if the metadata cannot be read."""
        return iter(())

    def changeable(self, store: Store) -> Mapping[str, Any] | None:
        """The specs of options in a shard's metadata that may change; None: it has no options, or cannot be read."""
        return None

    # Batch plans (spark/compile/batch.py)

    @property
    def native(self) -> Native | None:
        """A native Spark operator that gives the same in a batch, or None."""
        return None

    @property
    def parts(self) -> Mapping[str | None, Operator]:
        """The operators with separate output in a batch: one per windowing, by name; or itself."""
        return {None: self}


def counts_of_step(
    shard: Shard, table: pa.Table, dropped_before: Mapping[str, int], clock_us: int | None
) -> dict[str, int | None]:
    """All metrics of a step.

    Args:
        shard: after the step.
        table: its output.
        dropped_before: the shard's ``dropped`` before the step.
        clock_us: the clock of the step.
    """
    after = shard.dropped
    dropped = {name: after.get(reason, 0) - dropped_before.get(reason, 0) for reason, name in DROPPED.items()}
    counts = shard.counts
    return {
        "rows": counts.taken,
        **counts_of_output(table),
        **dropped,
        "max_late_by_ms": _ms(counts.late_by_us),
        "live_windows": counts.windows,
        "shards": 1,
        "watermark_ms": _ms(shard.watermark_us),
        "next_due_ms": _ms(shard.next_due_us),
        "clock_ms": _ms(clock_us),
    }


def _ms(us: int | None) -> int | None:
    return None if us is None else us // 1000
