"""The operator of ``HoldBack``: rows that are held are a table by key in the store, cut into segments by their times."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.at_rest import Answer
from beamish.contract.clocks import Clocks
from beamish.contract.kept import Layout
from beamish.contract.operator import Operator, Shard
from beamish.contract.schemas import PANE, TIMESTAMP, WINDOW
from beamish.contract.sharding import times_of, to_shards
from beamish.contract.updates import Updates
from beamish.instants import NO_TIME_US
from beamish.kernels.codes import normalise
from beamish.kernels.ipc import from_bytes
from beamish.kernels.reserved import EVENT_TIME
from beamish.tables.notes import entry_note, kind_entry, read_note
from beamish.tables.records import Records
from beamish.tables.segment_store import SegmentStore
from beamish.tables.segmented_records import SegmentedRecords, record_table
from beamish.watermarks import NO_WATERMARK_US

NAME = "hold back"
NOTE = kind_entry("held_back", "a stage that holds rows back")
_LAYOUT = Layout(NOTE, ("first_us",))
_SPAN_US = 4_000_000
_check = partial(read_note, entry=NOTE, format_=1, holds="rows", by="held_back(...)")
_note = partial(entry_note, NOTE, check=_check)


@attrs.frozen(eq=False)
class Held(Records):
    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {EVENT_TIME: ("int64", 0)}


class HeldRows(SegmentedRecords[Held]):
    def __init__(self, none, store):
        super().__init__(SegmentStore(store, _LAYOUT), none)

    @property
    def first_us(self):
        return min(self.segments.index["first_us"].tolist(), default=None)

    def take(self, until_us):
        """Take out what is due at a time, read only where there is something."""
        self.load_where(self.segments.index["first_us"] <= until_us)
        due = np.flatnonzero(self.records[EVENT_TIME] <= until_us)
        self.remove(due)
        return self.records.take(due).stored()

    def save(self, watermark_us):
        self.write_back(
            lambda held: held[EVENT_TIME] // _SPAN_US,
            lambda held: np.ones(len(held), bool),
            lambda columns, runs: {"first_us": runs.least(columns[EVENT_TIME])},
        )


class HoldBackOperator(Operator):
    holds_watermark = True

    def __init__(self, takes, gives, shards, span_us):
        self.takes, self.shards, self.span_us = takes, shards, span_us
        self.identity = {"shards": shards, "span": span_us}
        self.none = Held.none(takes[0].columns)
        columns = [*takes[0].columns, ("window", WINDOW), ("pane", PANE), ("timestamp", TIMESTAMP)]
        self.gives = attrs.evolve(gives, schema=pa.schema(columns))

    def reads(self, source):
        return self.takes[0].columns.names

    def pack(self, source, rows):
        keys = [normalise(rows[name].combine_chunks()) for name in self.takes[0].keys]
        yield from to_shards(
            rows.select(self.reads(0)).append_column(EVENT_TIME, times_of(self.takes[0], rows)),
            keys,
            source,
            self.shards,
        )

    def tables(self):
        return [record_table(_LAYOUT, self.none, self.takes[0].keys, partial(HeldRows, self.none))]

    def notes(self):
        return [_note(self.identity)]

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
        return [f"{NOTE}/"]

    def read(self, store):
        held = HeldRows(self._operator.none, store).stored()
        time = pa.array(held[EVENT_TIME])
        due = pc.add(time, self._operator.span_us).cast(TIMESTAMP)
        columns = [pa.array([NAME] * len(time), pa.string()), *held.cells.columns, pa.nulls(len(time), WINDOW)]
        shown = [pa.array(["PANE"] * len(time), pa.string()), time.cast(TIMESTAMP), pa.nulls(len(time), TIMESTAMP), due]
        return pa.table([*columns, *shown], schema=self.schema)


class HoldBackShard(Shard):
    def __init__(self, operator, store):
        self.operator, self._store, self._held = operator, store, HeldRows(operator.none, store)
        about = _check(store, identity=operator.identity)
        self.clocks = Clocks.new(1) if about is None else Clocks.of(about["clocks"])
        self.held = None if about is None else about["held"]

    def updates(self, sources_us, clock_us, payloads):
        self.clocks.step([self.operator.takes[0].policy], sources_us, clock_us)
        came = [rows.replace_schema_metadata(None) for rows in map(from_bytes, payloads)]
        for rows in came:
            self._held.add(Held.of_stored(rows.filter(rows[EVENT_TIME].is_valid())))
        due = self._held.take(self.clocks.watermark_us - self.operator.span_us)
        rows = pa.concat_tables([due, *(rows.filter(rows[EVENT_TIME].is_null()) for rows in came)])
        rows = rows.sort_by([(name, "ascending") for name in (EVENT_TIME, *self.operator.reads(0))])
        time_us = pc.fill_null(rows[EVENT_TIME], NO_TIME_US).to_numpy()
        return [Updates.of_rows(rows.select(self.operator.reads(0)), time_us, self.operator.key_schema.names)]

    def save(self, held=None):
        self._held.save(self.clocks.watermark_us)
        about = {"identity": self.operator.identity, "clocks": attrs.asdict(self.clocks), "dropped": {}, "format": 1}
        _note(self.operator.identity).write(self._store, {**about, "held": held})

    @property
    def watermark_us(self):
        now = self.clocks.watermark_us
        return None if now == NO_WATERMARK_US else now - self.operator.span_us

    @property
    def next_due_us(self):
        least = self._held.first_us
        return None if least is None else least + self.operator.span_us
