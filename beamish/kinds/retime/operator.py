"""The operator of a stage that sets timestamps, and its shards, which store clocks alone.

A shard notes the kind under its call; its state is one entry, ``kind``: JSON with the clocks and the number of dropped rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.drops import TAKEN, Drops, why_dropped
from beamish.contract.inputs import check_keys, find_column, signs_of, wanted, where_identity
from beamish.contract.keys import from_shards, to_shards
from beamish.contract.operator import Operator, Shard
from beamish.contract.relation import Relation
from beamish.contract.stored import Note, Store
from beamish.contract.updates import (
    PANE,
    PANE_KIND,
    RETRACTION_KIND,
    TIMESTAMP,
    TIMINGS,
    WINDOW,
    Updates,
    make_block,
)
from beamish.durations import Duration
from beamish.errors import ColumnError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import numbers
from beamish.kernels.codes import normalise
from beamish.kernels.column_names import EVENT_TIME, SIGN
from beamish.tables.notes import NotedShard
from beamish.watermarks import NO_WATERMARK_US

_NUMBERS = ("timing", "index", "on_time_index", "is_first", "is_last")
"""The fields of a pane that its row keeps."""


class Timed(Protocol):
    """Such a stage, as declared."""

    @property
    def call(self) -> str:
        """The call that declares it."""
        ...

    @property
    def column(self) -> str:
        """The column with the time."""
        ...

    @property
    def delay(self) -> Duration:
        """How far the forwarded watermark is behind."""
        ...


@attrs.define(slots=False, eq=False)
class RetimePlan:
    """Such a stage bound to its input.

    Attributes:
        call: the call that declares it.
        column: the column with the time.
        delay: how far the forwarded watermark is behind.
        takes: the input, with its schema.
        shards: number of shards.
        gives: the output.
    """

    call: str
    column: str
    delay: Duration
    takes: Relation
    shards: int
    gives: Relation

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of rows."""
        return self.takes.own_columns

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the plan that may not change under a checkpoint."""
        keys = [self.schema.field(name) for name in self.takes.keys]
        return {
            "shards": self.shards,
            "keys": [f"{field.name}: {field.type}" for field in keys],
            "column": self.column,
            "delay": str(self.delay),
            "condition": where_identity(self.takes),
        }

    def forwarded_us(self, watermark_us: int | None) -> int | None:
        """The watermark that is forwarded; at the end of time it is that."""
        if watermark_us in (None, END_OF_TIME_US):
            return watermark_us
        return max(watermark_us - self.delay.us, NO_WATERMARK_US + 1)


def make_retime_plan(stage: Timed, takes: Relation, gives: Relation, shards: int) -> RetimePlan:
    """Bind it to its input (ColumnError: the column is missing, or has no times)."""
    columns, call, column = takes.columns, stage.call, stage.column
    check_keys(columns, takes.keys)
    try:
        type_ = find_column(columns, call, column).type
    except ColumnError as error:
        raise ColumnError(f"{error}. Without event_time(...) a pane is at its timestamp") from None
    if not (pa.types.is_timestamp(type_) or is_number(type_) or pa.types.is_null(type_)):
        raise ColumnError(
            f"{call}: {column!r} is {type_}; it must be a timestamp, or a number of seconds since the epoch: cast it by with_columns(...) in the stage before"
        )
    fields = [*takes.own_columns, ("window", WINDOW), ("pane", PANE), ("timestamp", TIMESTAMP)]
    bound = attrs.evolve(gives, schema=pa.schema(fields))
    return RetimePlan(call, column, stage.delay, takes, shards, bound)


def is_number(type_: pa.DataType) -> bool:
    """Whether its values may be seconds since the epoch."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def time_us_in(column: pa.Array) -> pa.Array:
    """The times in a column: int64, microseconds; numbers are seconds, and NaN and infinite ones are null."""
    type_ = column.type
    if pa.types.is_timestamp(type_):
        return column.cast(pa.timestamp("us", tz=type_.tz), safe=False).cast(pa.int64())
    if pa.types.is_null(type_):
        return pa.nulls(len(column), pa.int64())
    seconds = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()
    known = np.abs(seconds) < 1e12  # beyond all event times, and within 64 bits of microseconds
    us = np.round(np.where(known, seconds, 0) * 1e6).astype(np.int64)
    return pa.array(np.where(known, us, END_OF_TIME_US), mask=np.isnan(seconds))


class RetimeShard(NotedShard):
    """Some of the keys of such a stage (see ``contract/operator.py``)."""

    HOLDS, BY = "no rows", "event_time(...) in a later stage"

    def __init__(self, operator: Operator, plan: RetimePlan, store: Store) -> None:
        super().__init__(operator, store)
        self._plan = plan

    @property
    def watermark_us(self) -> int | None:
        return self._plan.forwarded_us(super().watermark_us)

    @property
    def next_due_us(self) -> int | None:
        return None

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        plan = self._plan
        self.clocks.step([plan.takes.policy], sources_us, clock_us)
        if not payloads:
            return []
        rows = from_shards(payloads)[0]
        why = why_dropped(rows[EVENT_TIME], None, NO_WATERMARK_US)
        Drops(None, self.dropped).add(why, np.zeros(len(why), np.int64), self.clocks.watermark_us, {}, None)
        rows = rows.take(pa.array(np.flatnonzero(why == TAKEN)))
        removes = numbers(rows[SIGN].combine_chunks()) < 0
        block = make_block(
            rows.num_rows,
            windowless=True,
            kind=np.where(removes, RETRACTION_KIND, PANE_KIND).astype(np.int8),
            pane_time_us=numbers(rows[EVENT_TIME].combine_chunks()),
            **{name: rows[f"pane.{name}"].to_numpy() for name in _NUMBERS},
        )
        keys = list(plan.takes.keys)
        values = [name for name in plan.schema.names if name not in keys]
        return [Updates(block, rows.select(keys), rows.select(values))]


@attrs.define(slots=False, eq=False)
class RetimeOperator(Operator):
    """Such a stage bound to its data (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
    """

    plan: RetimePlan
    holds_watermark = True

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = (plan.takes,), plan.gives, plan.shards, plan.identity
        self.moves_by([plan.takes.policy])

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        takes = self.takes[number]
        rows = wanted(takes, rows)
        pane = rows["pane"].combine_chunks()
        own = rows.select(self.plan.schema.names)
        own = own.append_column(EVENT_TIME, time_us_in(rows[self.plan.column].combine_chunks()))
        own = own.append_column(SIGN, signs_of(takes, rows))
        for name in _NUMBERS:
            field = pane.field(name)
            of = pc.index_in(field, pa.array(list(map(str, TIMINGS)))).cast(pa.int8()) if name == "timing" else field
            own = own.append_column(f"pane.{name}", of)
        keys = [normalise(rows[name].combine_chunks()) for name in takes.keys]
        yield from to_shards(own, keys, takes, number, self.shards)

    def open(self, store: Store) -> Shard:
        return RetimeShard(self, self.plan, store)

    def notes(self) -> Sequence[Note]:
        return [RetimeShard.note(self.identity)]
