"""The laws of beamish/engine/operator.py for every operator of a flow, one of a stage kind that lives in the tests among them.

For pipelines of all kinds the first two are in test_what_changes_nothing.py too.
"""

from __future__ import annotations

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.engine.operator import Cadence
from beamish.engine.state import DictStore
from beamish.kernels.reserved import EVENT_TIME
from beamish.script.panes import panes_from_table
from beamish.source import Source
from tests.agreement import differences
from tests.own.hold_back import held_back
from tests.seconds import S
from tests.strategies.accumulations import accumulations
from tests.strategies.suppress import patient, suppressed, until_limit
from tests.strategies.triggers import triggers
from tests.strategies.watermarks import watermarks
from tests.strategies.windows import windows

COLUMNS = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "team": pa.string(),
        "score": pa.int64(),
        "ratio": pa.float64(),
        "name": pa.string(),
        "cost": pa.decimal128(10, 2),
        "flag": pa.bool_(),
        "mark": pa.timestamp("us", "UTC"),
    }
)


@st.composite
def window_flows(draw: st.DrawFn):
    """A flow of one stage, or of a stage over it, that its ``check`` accepts."""
    first = (
        bm.Pipeline()
        .event_time("ts", draw(watermarks))
        .key_by(*draw(st.sampled_from([(), ("team",)])))
        .window(draw(windows))
        .trigger(draw(triggers), allow_data_loss=True)
        .accumulation_mode(draw(st.sampled_from(bm.AccumulationMode)))
        .accumulate(v=draw(accumulations))
    )
    if draw(st.booleans()):
        later = bm.Pipeline().trigger(draw(triggers), allow_data_loss=True).accumulating()
        try:
            first = first.then(later.accumulate(n=bm.accumulations.Count()))
        except bm.PipelineError:
            assume(False)  # noqa: FBT003
    try:
        first.flow.check()
    except bm.PipelineError:
        assume(False)  # noqa: FBT003
    return first.flow


bundles = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.none() | st.integers(0, 30),
            "team": st.sampled_from(["red", "blue", None]),
            "score": st.none() | st.integers(0, 3),
            "ratio": st.sampled_from([None, 0.5, 2.0]),
            "name": st.sampled_from([None, "a", "b"]),
            "flag": st.none() | st.booleans(),
        }
    ),
    max_size=4,
)
rising = st.none() | st.integers(0, 9)
steps = st.lists(st.tuples(rising, rising, bundles), max_size=6)
"""How far the watermark and the clock move, in seconds (None: they do not), and rows."""


def table(rows):
    times = [None if row["ts"] is None else row["ts"] * S for row in rows]
    own = pa.Table.from_pylist([{**row, "ts": time} for row, time in zip(rows, times, strict=True)], schema=COLUMNS)
    return own.append_column(EVENT_TIME, pa.array(times, pa.int64()))


@st.composite
def suppressed_flows(draw: st.DrawFn):
    """The same with some of their stages suppressed."""
    try:
        return draw(suppressed(window_flows().map(bm.Pipeline), buffers=patient)).flow
    except bm.PipelineError:
        assume(False)  # noqa: FBT003


CHANGES = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
changes_flows = st.builds(
    lambda sequence_by, until, buffer: (
        CHANGES.changes(deleted="flag", sequence_by=sequence_by).suppress(until, buffer=buffer).flow
    ),
    st.sampled_from([None, "score", "name"]),
    until_limit("event", "processing"),
    patient,
)
SOURCE = Source("ts", bm.BoundedOutOfOrderness(0), ("team",))
SUMS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(3))
    .accumulate(n=Count(), sum=Sum("score"))
)
LATER = bm.Pipeline().key_by("team").window(bm.FixedWindows(5)).accumulate(of=Count())
SPANS = st.integers(1, 9)
flows = st.one_of(
    window_flows(),
    suppressed_flows(),
    changes_flows,
    st.builds(lambda span: held_back(span, SOURCE).flow, SPANS),
    st.builds(lambda span: held_back(span, SUMS).flow, SPANS),
    st.builds(lambda span: held_back(span, SOURCE).then(LATER).flow, SPANS),
    st.builds(lambda span: held_back(span, SUMS).then(LATER).flow, SPANS),
)


class Running:
    """The operators of a flow of stages one after the other."""

    def __init__(self, flow, *, shards=1, packs=1, reopens=False):
        self.operators = [one.operator for one in flow.bind({None: COLUMNS}, shards=shards).flows]
        self.stores = [[DictStore() for _ in range(one.shards)] for one in self.operators]
        self.packs, self.reopens, self.watermark_us, self.clock_us = packs, reopens, 0, 0
        self.open()

    def open(self):
        self.shards = [
            [one.open(store) for store in stores] for one, stores in zip(self.operators, self.stores, strict=True)
        ]

    def step(self, watermark, clock, rows):
        """Gives what comes out of each stage."""
        if self.reopens:
            self.open()
        self.watermark_us += (watermark or 0) * S
        self.clock_us += (clock or 0) * S
        source_us, taken, out = None if watermark is None else self.watermark_us, table(rows), []
        for operator, shards in zip(self.operators, self.shards, strict=True):
            payloads = {}
            for part in reversed(range(self.packs)):
                rows = taken.take(pa.array(range(part, len(taken), self.packs), pa.int64()))
                for number, payload in operator.pack(0, rows) if len(rows) else []:
                    payloads.setdefault(number, []).append(payload)
            clock_us = None if clock is None else self.clock_us
            tables = [shard.step([source_us], clock_us, payloads.get(i, [])) for i, shard in enumerate(shards)]
            taken, source_us = pa.concat_tables(tables), shards[0].watermark_us
            out.append(panes_from_table(taken, operator.gives))
        return out


def is_the_same(flow, one, other, steps):
    for step in steps:
        for of_stage, panes, otherwise in zip(flow.flows, one.step(*step), other.step(*step), strict=True):
            found = differences(otherwise, panes, bm.Pipeline(of_stage))
            assert not found, "\n".join(found)


@given(flows, steps, st.integers(2, 4))
def test_how_rows_are_packed_changes_nothing(flow, steps, packs):
    is_the_same(flow, Running(flow), Running(flow, packs=packs), steps)


@given(flows, steps, st.integers(2, 4))
def test_the_number_of_shards_changes_nothing(flow, steps, shards):
    is_the_same(flow, Running(flow), Running(flow, shards=shards), steps)


@given(flows, steps)
def test_reopening_a_shard_from_the_bytes_in_its_store_changes_nothing(flow, steps):
    going_on, reopened = Running(flow), Running(flow, reopens=True)
    for step in steps:
        assert list(map(repr, reopened.step(*step))) == list(map(repr, going_on.step(*step)))
    due = [[shard.next_due_us for shards in one.shards for shard in shards] for one in (going_on, reopened)]
    assert due[0] == due[1]


@given(flows, steps, st.booleans())
def test_a_step_of_nothing_gives_nothing_and_leaves_the_stored_bytes_as_they_are(flow, steps, reopens):
    running = Running(flow, reopens=reopens)
    # With an idle timeout a step of nothing is one more step in which no row came.
    assume(all(operator.cadence is Cadence.WHEN_DUE for operator in running.operators))
    for step in [(None, None, []), *steps]:  # the first writes what the shard is
        running.step(*step)
    before = [[dict(store) for store in stores] for stores in running.stores]
    if reopens:
        running.open()
    for shards in running.shards:
        for shard in shards:
            assert shard.step([None], None, []).num_rows == 0
    assert running.stores == before
