"""The operator of ``HoldBack``: rows that are held are a table in the store, by key, in segments by their times."""

from __future__ import annotations

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.held import HeldRows
from beamish.contract.keys import from_shards
from beamish.contract.operator import Operator
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, Updates
from beamish.instants import NO_TIME_US
from beamish.kernels.column_names import EVENT_TIME
from beamish.tables.notes import NotedShard
from beamish.tables.timed_records import Timed, timed_table

NAME = "hold back"


class HoldBackOperator(Operator):
    holds_watermark = True

    def __init__(self, takes, gives, shards, span_us):
        self.takes, self.shards, self.span_us = takes, shards, span_us
        self.identity = {"shards": shards, "span": span_us}
        columns = takes[0].columns
        output = [*columns, ("window", WINDOW), ("pane", PANE), ("timestamp", TIMESTAMP)]
        self.gives = attrs.evolve(gives, schema=pa.schema(output))
        self.table = timed_table("held_back", Timed.none(columns), takes[0].keys)

    def notes(self):
        return [HoldBackShard.note(self.identity)]

    def tables(self):
        return [self.table]

    def open(self, store):
        return HoldBackShard(self, store)

    def answer(self, asked):
        return HeldBack(self, NAME)

    def updates(self, rows):
        """Rows by time, those without one last."""
        rows = rows.sort_by([(name, "ascending") for name in (EVENT_TIME, *self.reads(0))])
        time_us = pc.fill_null(rows[EVENT_TIME], NO_TIME_US).to_numpy()
        return Updates.of_rows(rows.select(self.reads(0)), time_us, self.takes[0].keys)


class HoldBackShard(NotedShard):
    HOLDS, BY = "rows", "held_back(...)"

    def __init__(self, operator, store):
        super().__init__(operator, store)
        self._held, self._span_us = operator.table.open(store), operator.span_us

    def updates(self, sources_us, clock_us, payloads):
        self.clocks.step([self.operator.takes[0].policy], sources_us, clock_us)
        came = from_shards(payloads).values()
        for rows in came:
            self._held.add(Timed.of_stored(rows.filter(rows[EVENT_TIME].is_valid())))
        due = self._held.take_until(self.clocks.watermark_us - self._span_us).stored()
        untimed = [rows.filter(rows[EVENT_TIME].is_null()) for rows in came]
        return [self.operator.updates(pa.concat_tables([due, *untimed]))]

    def save(self):
        self._held.save()
        super().save()

    @property
    def watermark_us(self):
        now_us = super().watermark_us
        return None if now_us is None else now_us - self._span_us

    @property
    def next_due_us(self):
        first_us = self._held.first_us
        return None if first_us is None else first_us + self._span_us


class HeldBack(HeldRows):
    def needs(self, notes):
        return [self.operator.table.layout.entry("")]

    def held(self, store):
        rows = self.operator.table.open(store).stored()
        output = self.operator.rows([self.operator.updates(rows.stored())])
        time_us = np.sort(rows.time_us)
        return output, time_us, time_us + self.operator.span_us
