"""The border between the engine and the runners: an operator is a stage bound to its data, a shard does its work.

The rows of what an operator takes are packed into payloads, bytes for one shard each, where the rows are; payloads go
to their shards; a shard steps and gives updates, of which the operator makes rows. The runner owns the order of steps, the
way of payloads, the store and the clocks' raw readings; the operator owns what the bytes mean.

Laws (tests/laws/test_operators.py, for every operator):

1. How rows are packed changes nothing: into one payload or several, in any order, at once or piece by piece.
2. The number of shards changes nothing, but for the order of rows between keys.
3. Reopening a shard from the bytes in its store, between two steps, changes nothing.
4. A step of nothing - no payload, no clock that moves - gives nothing, and leaves the stored bytes as they are. (With
   ``EVERY_STEP`` the number of such steps may count; a shard's first step stores what it is.)
5. ``updates`` writes nothing: ``save`` does, when rows are made of them; so a step that raises leaves the stored bytes as they were.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, Compared
from beamish.contract.clocks import Clocks
from beamish.contract.counts import DROPPED, Counts, counts_of_output
from beamish.contract.kept import KeyedTable, Note
from beamish.contract.pane_columns import Block
from beamish.contract.relation import Relation
from beamish.contract.sharding import shard_of, times_of, to_shards
from beamish.contract.store import Store
from beamish.contract.updates import Updates
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.codes import normalise
from beamish.kernels.groups import Groups
from beamish.kernels.order import Key
from beamish.kernels.reserved import EVENT_TIME
from beamish.watermarks import Watermark, known_us


class Cadence(enum.Enum):
    """When a shard must be stepped beside the steps that bring it payloads."""

    WHEN_DUE = "when_due"
    """When the watermark reaches its ``next_due_us``; and when the clock moves, if the operator needs the clock."""
    EVERY_STEP = "every_step"
    """In every step, since what it does depends on how steps follow one another."""


Finish = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@attrs.frozen
class Native:
    """An operator of Spark's own.

    Attributes:
        name: AGGREGATION or WINDOW_FUNCTION.
        plan: the plan that it would do, of the kind of stage.
    """

    AGGREGATION: ClassVar = "aggregation"
    WINDOW_FUNCTION: ClassVar = "window function"

    name: str
    plan: Any


class Shard(Protocol):
    """Some of the keys of an operator.

    Attributes:
        operator: it makes rows of the shard's updates.
        clocks: where they stand.
        watermark_us: the watermark that it hands on to the stage after; None before there is one.
        next_due_us: the least watermark at which something in it is due; None: nothing is.
        dropped: number of rows dropped so far, by reason.
        counts: what happened in the last step.
        held: the ``name`` of the suppress that the state was written under, and how many ``updates`` it holds; None: there
            never was one.
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

    def begin(self, payloads: Sequence[bytes]) -> None:
        """Take in rows that are there before the first step; asked of the inputs that a stage ``may_begin_with``."""
        raise TypeError(f"{type(self).__name__} begins with nothing")

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        """Advance the clocks and take rows in; what comes in from stages comes before the clocks move. Nothing is written yet.

        Args:
            sources_us: per input the watermark of its source, or of the stage that gives it; microseconds, None or not
                ahead: it does not move.
            clock_us: the processing-time clock; microseconds, None or not ahead: it does not move.
            payloads: rows, as ``Operator.pack`` gave them.

        Returns:
            what comes out, in order, in any number of parts.
        """
        ...

    def save(self, held: Mapping[str, Any] | None = None) -> None:
        """Write what the updates' step has changed; ``held``: what a suppress holds after it."""
        ...

    def step(self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]) -> pa.Table:
        """A whole step: its updates as rows in the operator's ``gives.schema``; then it is saved."""
        rows = self.operator.rows(self.updates(sources_us, clock_us, payloads))
        self.save()
        return rows


class Operator(Protocol):
    """A stage bound to the columns and types of what it takes. Subclasses redefine what differs for them.

    Attributes:
        takes: its inputs, in order.
        gives: what it gives.
        shards: number of shards.
        identity: what a checkpoint holds fast, in terms of JSON: with another identity the state is refused.
        needs_clock: whether its shards need the processing-time clock.
        cadence: when its shards must be stepped. (One that takes the panes of a stage is stepped in every step: they come
            in before the watermark moves.)
        holds_watermark: whether the watermark that its shards hand on may trail the one they stand at.
        adds_up: whether a later update adds to an earlier one, by ``combine``; else it replaces it.
        waits_for_pane: whether what a merged window takes back waits for its next pane.
        keeps_newest: whether updates are changes, of which the newest counts by ``newest_keys``, and not panes of a window.
    """

    takes: Sequence[Relation]
    gives: Relation
    shards: int
    identity: Mapping[str, Any]
    needs_clock: bool = False
    cadence: Cadence = Cadence.WHEN_DUE
    holds_watermark: bool = False
    adds_up: bool = False
    waits_for_pane: bool = False
    keeps_newest: bool = False

    def moves_by(self, policies: Sequence[Watermark]) -> None:
        """Say that its watermarks move by these: whether they need the clock, and whether one counts steps."""
        self.needs_clock = any(policy.needs_clock for policy in policies)
        counts = any(policy.idle_timeout is not None for policy in policies)
        self.cadence = Cadence.EVERY_STEP if counts else Cadence.WHEN_DUE

    def reads(self, number: int) -> Sequence[str]:
        """The columns of input ``number`` that ``pack`` must get, beside the event time; by default all."""
        return list(self.takes[number].columns.names)

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        """Pack rows into payloads; by default as they are, by the keys of their input, with ``EVENT_TIME``.

        Args:
            number: the number of the input that they are of.
            rows: of a source the columns that ``reads`` names and ``EVENT_TIME``; of a stage its output, without
                dropped rows.

        Returns:
            pairs of shard number and payload; a shard may get several.
        """
        takes = self.takes[number]
        own = rows.select(self.reads(number)).append_column(EVENT_TIME, times_of(takes, rows))
        keys = [normalise(rows[name].combine_chunks()) for name in takes.keys]
        yield from to_shards(own, keys, number, self.shards)

    def pack_pieces(self, number: int, pieces: Iterable[pa.Table]) -> Iterator[tuple[int, bytes]]:
        """Pack rows that come piece by piece, as ``pack`` does; payloads may wait for further pieces, to be fewer and smaller."""
        for rows in pieces:
            yield from self.pack(number, rows)

    def tables(self) -> Sequence[KeyedTable]:
        """The keyed tables of its shards; rows are partitioned by the key of the first."""
        return ()

    def notes(self) -> Sequence[Note]:
        """The metadata of its shards; empty: they cannot be rescaled."""
        return ()

    def observe(self) -> None:
        """Have its shards count what they only do where somebody looks; said before rows are packed."""
        return

    def open(self, store: Store) -> Shard:
        """The shard whose state is in a store, or a new one.

        Raises:
            StateError: the state was written by another operator, number of shards or format.
        """
        ...

    def rows(self, updates: Sequence[Updates]) -> pa.Table:
        """What a step gives as rows of output, in ``gives.schema``; windows that merged away are not among it."""
        return self.panes(updates)

    def panes(self, updates: Sequence[Updates]) -> pa.Table:
        """The same, before columns are computed of it and rows left out."""
        schema = self.gives.schema
        assert schema is not None  # noqa: S101 - it is bound
        return pa.concat_tables([part.rows(schema) for part in updates] or [schema.empty_table()])

    # Of updates that a suppress takes

    @cached_property
    def key_schema(self) -> pa.Schema:
        """What they are of."""
        return pa.schema([self.gives.columns.field(name) for name in self.gives.keys])

    @cached_property
    def value_schema(self) -> pa.Schema:
        """What they hold."""
        return pa.schema([self.gives.columns.field(name) for name in self.gives.values])

    def shard_of(self, keys: pa.Table) -> int:
        """The number of the shard that a key, one row, belongs to."""
        return shard_of(keys.select(list(self.takes[0].keys)), self.shards)

    def closes_us(self, end_us: Ints) -> Ints:
        """int64, microseconds: the watermark at which windows with these ends close."""
        return end_us

    def combine(self, values: pa.Table, groups: Groups) -> pa.Table:
        """The values of each group added up; asked if it ``adds_up``."""
        raise TypeError(f"{type(self).__name__} adds nothing up")

    def newest_keys(self, time_us: Ints, deletes: Flags, values: pa.Table) -> tuple[list[Key], list[Key]]:
        """Sort keys (``kernels/order.py``) of changes: the greatest is the newest; asked if it ``keeps_newest``.

        Args:
            time_us: int64[n], their event times.
            deletes: bool[n], whether they delete.
            values: n rows.

        Returns:
            those that come before the order of steps, and those that come after it.
        """
        return [], []

    def replaces_unseen(self, columns: Block) -> Flags:
        """Whether panes may stand for others that came out before and are not taken back: bool, one per update."""
        return np.zeros(len(columns["kind"]), dtype=bool)

    # What its shards keep, to look at (contract/at_rest.py)

    @property
    def core(self) -> Operator:
        """The operator that this one wraps; itself, if it is no wrapper."""
        return self

    def answer(self, asked: Asked) -> Answer:
        """See ``contract/at_rest.py``; of a wrapper its core's."""
        if self.core is self:
            raise NotImplementedError(f"{type(self).__name__} keeps no {asked.what}, which its stage says it does")
        return self.core.answer(asked)

    def compared(self, store: Store) -> Iterator[Compared]:
        """What of it differs from what a shard noted, beside what ``open`` refuses; nothing where the notes cannot be read."""
        return iter(()) if self.core is self else self.core.compared(store)

    # In a batch (spark/compile/batch.py)

    @property
    def native(self) -> Native | None:
        """An operator of Spark's own that may give the same in a batch; None: there is none."""
        return None

    @property
    def parts(self) -> Mapping[str | None, Operator]:
        """The operators whose output in a batch is its own: one for each windowing, by name; or itself."""
        return {None: self}

    @property
    def unfinished(self) -> tuple[Operator, Finish | None]:
        """The same without what is done to its rows at last, and that, batch by batch; None: nothing is."""
        return self, None


def counts_of_step(
    shard: Shard, table: pa.Table, dropped_before: Mapping[str, int], clock_us: int | None
) -> dict[str, int | None]:
    """All that is counted of a step.

    Args:
        shard: after the step.
        table: what came out of it.
        dropped_before: the shard's ``dropped`` before it.
        clock_us: the clock that it was given.
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
