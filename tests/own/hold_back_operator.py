"""The operator of ``HoldBack``: what is held is one table of rows in the store."""

from __future__ import annotations

import json

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.at_rest import Answer
from beamish.contract.operator import Operator, Shard
from beamish.contract.schemas import PANE, TIMESTAMP, WINDOW
from beamish.contract.sharding import times_of, to_shards
from beamish.contract.updates import Updates
from beamish.instants import NO_TIME_US
from beamish.kernels.codes import normalise
from beamish.kernels.ipc import from_bytes, to_bytes
from beamish.kernels.reserved import EVENT_TIME
from beamish.tables.notes import kind_entry

NAME = "hold back"
NOTE = kind_entry("held back", "a stage that holds rows back")


class HoldBackOperator(Operator):
    holds_watermark = True

    def __init__(self, takes, gives, shards, span_us):
        self.takes, self.shards, self.span_us = takes, shards, span_us
        self.identity = {"shards": shards, "span": span_us}
        self.held = pa.schema([(EVENT_TIME, pa.int64()), *takes[0].columns])
        columns = [*takes[0].columns, ("window", WINDOW), ("pane", PANE), ("timestamp", TIMESTAMP)]
        self.gives = attrs.evolve(gives, schema=pa.schema(columns))

    def reads(self, source):
        return self.takes[0].columns.names

    def pack(self, source, rows):
        keys = [normalise(rows[name].combine_chunks()) for name in self.takes[0].keys]
        columns = [times_of(self.takes[0], rows), *rows.select(self.reads(0)).columns]
        yield from to_shards(pa.table(columns, schema=self.held), keys, source, self.shards)

    def open(self, store):
        return HoldBackShard(self, store)

    def answer(self, asked):
        return HeldBack(self)


class HeldBack(Answer):
    """The rows that are held back, as ``held()`` shows what waits."""

    def __init__(self, operator):
        self._operator, self.keys = operator, operator.takes[0].keys
        times = [(name, TIMESTAMP) for name in ("timestamp", "since", "due")]
        columns = [*operator.takes[0].columns, ("window", WINDOW), ("kind", pa.string()), *times]
        self.schema = pa.schema([("suppress", pa.string()), *columns])

    def needs(self, notes):
        return ["held"]

    def read(self, store):
        (time, *own) = from_bytes(store.get("held") or to_bytes(self._operator.held.empty_table())).columns
        due = pc.add(time, self._operator.span_us).cast(TIMESTAMP)
        columns = [pa.array([NAME] * len(time), pa.string()), *own, pa.nulls(len(time), WINDOW)]
        shown = [pa.array(["PANE"] * len(time), pa.string()), time.cast(TIMESTAMP), pa.nulls(len(time), TIMESTAMP), due]
        return pa.table([*columns, *shown], schema=self.schema)


class HoldBackShard(Shard):
    def __init__(self, operator, store):
        self.operator, self._store = operator, store
        self._w_us = json.loads(store.get(NOTE) or b'{"clocks": {"watermark_us": -1}}')["clocks"]["watermark_us"]
        self._held = from_bytes(store.get("held") or to_bytes(operator.held.empty_table()))

    def updates(self, sources_us, clock_us, payloads):
        self._w_us = max([self._w_us, *(us for us in sources_us if us is not None)])
        rows = pa.concat_tables([self._held, *map(from_bytes, payloads)])
        rows = rows.sort_by([(name, "ascending") for name in rows.schema.names])
        waits = pc.fill_null(pc.greater(rows[EVENT_TIME], self._w_us - self.operator.span_us), False)  # noqa: FBT003
        out, self._held = rows.filter(pc.invert(waits)), rows.filter(waits)
        return [Updates.of_rows(out, pc.fill_null(out[EVENT_TIME], NO_TIME_US).to_numpy())]

    def save(self, held=None):
        self._store.put("held", to_bytes(self._held))
        note = {"clocks": {"watermark_us": self._w_us, "clock_us": 0, "inputs": []}, "dropped": {}}
        self._store.put(NOTE, json.dumps(note).encode())

    @property
    def watermark_us(self):
        return None if self._w_us < 0 else self._w_us - self.operator.span_us

    @property
    def next_due_us(self):
        least = pc.min(self._held[EVENT_TIME]).as_py()
        return None if least is None else least + self.operator.span_us
